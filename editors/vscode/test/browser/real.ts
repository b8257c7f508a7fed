/** The extension inside a real editor, against a real service with a real model. */

import * as vscode from "vscode";
import { api, connected, equal, pause, runAll, test, until } from "./harness";

declare const SERVICE_URL: string;

const SLOW = 120; // seconds: the model may run on one core

export async function run(): Promise<void> {
  await connected();
  await runAll(() => Promise.resolve());
}

async function open(content: string): Promise<vscode.TextDocument> {
  const document = await vscode.workspace.openTextDocument({ language: "python", content });
  await vscode.window.showTextDocument(document, { preview: false });
  return document;
}

const CODE = [
  "def area(width, height):",
  "    return width * height",
  "",
  "",
  "def volume(width, height, depth):",
  "    return area(width, height) * depth",
  "",
].join("\n");

/** Long enough to take a while. */
const LONGER = [
  "from decimal import Decimal",
  "",
  "",
  "def invoice(items, rate):",
  "    total = Decimal(0)",
  "    for item in items:",
  "        total += item.price * item.quantity",
  "    return total * (1 + rate)",
  "",
  "",
  "def summary(orders, rate):",
  "    rows = []",
  "    for order in orders:",
  "        rows.append((order.customer, invoice(order.items, rate)))",
  "    rows.sort(key=lambda row: row[1], reverse=True)",
  "    return rows",
  "",
  "",
  "def report(orders, rate):",
  "    for customer, amount in summary(orders, rate):",
  '        print(f"{customer}: {amount}")',
  '    print("all:", sum(invoice(order.items, rate) for order in orders))',
  "",
].join("\n");

for (const eol of ["\n", "\r\n"]) {
  test(`an edit is what the service replies at once, and one undo takes it back (${JSON.stringify(eol)})`, async () => {
    const instruction = "Rename the parameter depth to length.";
    const document = await open(CODE.replaceAll("\n", eol));
    // By another name: a request for the same document, and be it to warm it up, ends the one before.
    const uri = document.uri.with({ scheme: "direct" }).toString();
    const body = { document: { uri, language_id: "python", text: document.getText() }, instruction };
    const reply = await fetch(`${SERVICE_URL}/v1/edits`, { method: "POST", body: JSON.stringify(body) });
    const { text } = (await reply.json()) as { text: string };
    await vscode.commands.executeCommand("lookupSpec.edit", { instruction });
    equal(document.getText(), text);
    equal(text.includes("area(width, height) * length"), true, "the model does it");
    equal(((await api()).sessions.last?.edit.spent.accepted ?? 0) > 0, true, "some of it was looked up");
    await vscode.commands.executeCommand("undo");
    equal(document.getText(), CODE.replaceAll("\n", eol));
  });
}

test("without speculation the edit is the same, only later", async () => {
  const configuration = vscode.workspace.getConfiguration("lookupSpec");
  const results: string[] = [];
  for (const speculation of [true, false, true, false]) {
    await configuration.update("speculation", speculation, vscode.ConfigurationTarget.Global);
    const document = await open(LONGER);
    const began = performance.now();
    await vscode.commands.executeCommand("lookupSpec.edit", {
      instruction: "Rename the function invoice to gross everywhere.",
    });
    const all = performance.now() - began;
    const { spent } = (await api()).sessions.last?.edit ?? {};
    const first = 1000 * (spent?.firstHunk ?? 0);
    const with_ = speculation ? "with" : "without";
    console.log(`measured: ${with_} speculation ${spent?.tokens} tokens, first change ${first} ms, all ${all} ms`);
    results.push(document.getText());
  }
  await configuration.update("speculation", undefined, vscode.ConfigurationTarget.Global);
  equal(new Set(results).size, 1, "different results");
});

test("text is offered at the cursor and taken", async () => {
  const document = await open("def add(a, b):\n    ");
  await vscode.commands.executeCommand("workbench.action.focusActiveEditorGroup");
  await vscode.commands.executeCommand("cursorBottom");
  await vscode.commands.executeCommand("type", { text: "ret" });
  const typed = document.getText();
  const taken = async (): Promise<boolean> => {
    await vscode.commands.executeCommand("editor.action.inlineSuggest.trigger");
    await pause(1_000);
    await vscode.commands.executeCommand("editor.action.inlineSuggest.commit");
    return document.getText() !== typed;
  };
  await until(taken, "an offer", SLOW);
  equal(document.getText().startsWith(typed), true);
  equal(document.getText().startsWith("def add(a, b):\n    return"), true, document.getText());
});
