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
const BOX = (n: number): string => `def box_${n}(depth):\n    return area(${n}, ${n}) * depth\n`;
const LONGER = [CODE, ...[1, 2, 3, 4].map(BOX)].join("\n\n");

for (const eol of ["\n", "\r\n"]) {
  test(`an edit is what the service replies at once, and one undo takes it back (${JSON.stringify(eol)})`, async () => {
    const instruction = "Rename the function area to surface everywhere.";
    const document = await open(CODE.replaceAll("\n", eol));
    const body = {
      document: { uri: document.uri.toString(), language_id: "python", text: document.getText() },
      instruction,
    };
    const reply = await fetch(`${SERVICE_URL}/v1/edits`, { method: "POST", body: JSON.stringify(body) });
    const { text } = (await reply.json()) as { text: string };
    await vscode.commands.executeCommand("lookupSpec.edit", { instruction });
    equal(document.getText(), text);
    equal(text.includes("surface(width, height) * depth"), true, "the model does it");
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
      instruction: "Rename the function area to surface everywhere.",
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
