// The file that pictures and measurements are taken of.

export const CODE = `from decimal import Decimal


def invoice(items, rate):
    total = Decimal(0)
    for item in items:
        total += item.price * item.quantity
    return total * (1 + rate)


def summary(orders, rate):
    rows = []
    for order in orders:
        rows.append((order.customer, invoice(order.items, rate)))
    rows.sort(key=lambda row: row[1], reverse=True)
    return rows


def report(orders, rate):
    for customer, amount in summary(orders, rate):
        print(f"{customer}: {amount}")
    print("all:", sum(invoice(order.items, rate) for order in orders))
`;

export const renamed = (name) => CODE.replace(/\binvoice\b/g, name);
export const toRename = (name) => `Rename the function invoice to ${name} everywhere.`;
