// Files to start with, and what small models can be asked to do with them.

/** @type {{name: string, title: string, instruction: string, text: string}[]} */
export const SAMPLES = [
  {
    name: "invoice.py",
    title: "Rename a parameter",
    instruction: "Rename the parameter rate to tax_rate everywhere.",
    text: `from decimal import Decimal


def invoice(items, rate):
    """Adds up the items of an order, with discounts and tax."""
    total = Decimal(0)
    for item in items:
        price = item.price * item.quantity
        if item.discount:
            price = price * (1 - item.discount)
        total = total + price
    return total * (1 + rate)


def invoice_lines(items, rate):
    """One line of text for each item."""
    for item in items:
        yield f"{item.name}: {invoice([item], rate):.2f}"


def summary(orders, rate):
    """What every customer owes, the most first."""
    rows = [(order.customer, invoice(order.items, rate)) for order in orders]
    rows.sort(key=lambda row: row[1], reverse=True)
    return rows
`,
  },
  {
    name: "api.ts",
    title: "Replace a helper",
    instruction: "Rename get to fetchJson everywhere.",
    text: `import { get } from "./http";

export async function loadUser(id: string) {
  const response = await get(\`/users/\${id}\`);
  return response.data;
}

export async function loadOrders(id: string) {
  const response = await get(\`/users/\${id}/orders\`);
  return response.data;
}

export async function loadInvoices(id: string) {
  const response = await get(\`/users/\${id}/invoices\`);
  return response.data;
}

export async function loadAll(id: string) {
  const user = await loadUser(id);
  const orders = await loadOrders(id);
  const invoices = await loadInvoices(id);
  return { user, orders, invoices };
}
`,
  },
  {
    name: "services.yaml",
    title: "Raise a version",
    instruction: "Change the version 1.4 to 1.5 everywhere.",
    text: `services:
  gateway:
    image: gateway:1.4
    port: 8012
    replicas: 2
    healthcheck: /health
  worker:
    image: worker:1.4
    port: 8013
    replicas: 4
    healthcheck: /health
  archive:
    image: archive:1.4
    port: 8014
    replicas: 1
    healthcheck: /health
`,
  },
  {
    name: "events.js",
    title: "Modernize",
    instruction: "Use const and let instead of var.",
    text: `export function parseEvents(text) {
  var events = [];
  var blocks = text.split("\\n\\n");
  for (var i = 0; i < blocks.length; i++) {
    var block = blocks[i];
    if (block.indexOf("data: ") !== 0) {
      continue;
    }
    var event = JSON.parse(block.slice(6));
    events.push(event);
  }
  return events;
}

export function countHunks(events) {
  var count = 0;
  for (var i = 0; i < events.length; i++) {
    if (events[i].type === "hunk") {
      count = count + 1;
    }
  }
  return count;
}
`,
  },
];
