/** The extension inside a real editor, against a service that does as it is told. */

import * as vscode from "vscode";
import type { Fixture } from "../unit/fixtures";
import { api, asked, connected, equal, go, pause, runAll, script, test, until } from "./harness";

declare const FIXTURES: readonly (Fixture & { readonly name: string })[];

export async function run(): Promise<void> {
  await connected();
  await runAll(async () => {
    await script({});
    await connected(); // a claim that failed may have left it away
  });
}

const command = async (name: string, ...args: unknown[]): Promise<void> => {
  await vscode.commands.executeCommand(`lookupSpec.${name}`, ...args);
};
const undo = async (): Promise<void> => {
  await vscode.commands.executeCommand("undo");
};
const edit = (): Promise<void> => command("edit", { instruction: "Edit it." });

async function openFile(name: string): Promise<vscode.TextEditor> {
  const folder = vscode.workspace.workspaceFolders?.[0];
  if (folder === undefined) {
    throw new Error("no folder is open");
  }
  return vscode.window.showTextDocument(vscode.Uri.joinPath(folder.uri, name), { preview: false });
}

async function openText(content: string): Promise<vscode.TextEditor> {
  const document = await vscode.workspace.openTextDocument({ language: "python", content });
  return vscode.window.showTextDocument(document, { preview: false });
}

async function insert(editor: vscode.TextEditor, line: number, character: number, text: string): Promise<void> {
  const done = await editor.edit((builder) => {
    builder.insert(new vscode.Position(line, character), text);
  });
  equal(done, true, "the editor takes the text");
}

/** The editor gives every document one kind of line end, and takes off the byte-order mark. */
const asEditorHasIt = (text: string, document: vscode.TextDocument): string =>
  text.replace(/^\uFEFF/, "").replace(/\r\n|\r|\n/g, document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n");

const ROWS = Array.from({ length: 8 }, (_, n) => `row_${n} = ${n}\n`).join("");
const TWO = [
  { old: { start_line: 1, end_line: 2 }, text: "row_1 = 'one'\n" },
  { old: { start_line: 5, end_line: 7 }, text: "rows = 5, 6\n" },
];
const TWICE = ROWS.replace("row_1 = 1", "row_1 = 'one'").replace("row_5 = 5\nrow_6 = 6", "rows = 5, 6");

for (const { name, base, final, events, request } of FIXTURES) {
  if (name === "mixed-line-ends") {
    continue; // the editor does not keep mixed line ends: what it sends has one kind
  }
  test(`the recording ${name} ends with its final text, and one undo brings the document back`, async () => {
    const editor = await openFile(`${name}.py`);
    const { document } = editor;
    equal(document.getText(), asEditorHasIt(base, document), "base");
    if (request.range !== undefined) {
      const { start, end } = request.range;
      editor.selection = new vscode.Selection(start.line, start.character, end.line, end.character);
    }
    await edit();
    const last = events.at(-1);
    if (last?.type === "done" && last.finish_reason === "length") {
      equal(document.getText(), asEditorHasIt(base, document), "nothing is applied of what is incomplete");
      await command("acceptAll");
    }
    equal(document.getText(), asEditorHasIt(final, document), "final");
    if (final !== base) {
      await undo();
      equal(document.getText(), asEditorHasIt(base, document), "undone");
      await vscode.commands.executeCommand("redo");
      equal(document.getText(), asEditorHasIt(final, document), "redone");
      await undo();
    }
    equal((await api()).sessions.of(document)?.open.length ?? 0, 0, "nothing is left to decide");
    const [asking] = await asked("/v1/edits");
    equal(asking?.body["range"], request.range, "range");
  });
}

test("hunks are kept or taken back one by one, each in one step of undo", async () => {
  await script({ hunks: TWO });
  const { document } = await openText(ROWS);
  await edit();
  const session = (await api()).sessions.of(document);
  equal(document.getText(), TWICE);
  equal(session?.phase, "applied");
  await command("reject", 0);
  equal(document.getText(), TWICE.replace("'one'", "1"));
  await command("accept", 1);
  equal(document.getText(), TWICE.replace("'one'", "1"));
  equal(
    session?.hunks.map(({ state }) => state),
    ["rejected", "kept"],
  );
  equal(session?.phase, "over");
  await undo();
  equal(document.getText(), TWICE);
  await undo();
  equal(document.getText(), ROWS);
});

test("all hunks are taken back in one step, which one undo reverses", async () => {
  await script({ hunks: TWO });
  const { document } = await openText(ROWS);
  await edit();
  await command("rejectAll");
  equal(document.getText(), ROWS);
  await undo();
  equal(document.getText(), TWICE);
});

test("there are buttons above every hunk, and keys act on the one at the cursor", async () => {
  await script({ hunks: TWO });
  const editor = await openText(ROWS);
  await edit();
  const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>(
    "vscode.executeCodeLensProvider",
    editor.document.uri,
    10,
  );
  equal(
    lenses.filter(({ command: to }) => to?.command === "lookupSpec.accept").map(({ range }) => range.start.line),
    [1, 5],
  );
  editor.selection = new vscode.Selection(4, 0, 4, 0);
  await command("reject");
  equal(editor.document.getText(), TWICE.replace("rows = 5, 6", "row_5 = 5\nrow_6 = 6"));
  editor.selection = new vscode.Selection(0, 0, 0, 0);
  await command("next");
  equal(editor.selection.active.line, 1);
});

test("typing goes on during the stream: hunks move, a touched one is left out, undo is still one step", async () => {
  await script({ hunks: TWO, hold: 5 });
  const editor = await openText(ROWS);
  const { document } = editor;
  const running = edit();
  const { sessions } = await api();
  await until(() => sessions.of(document)?.hunks.length === 1, "the first hunk");
  equal(document.getText(), ROWS, "while it streams, the document is as it was");
  await insert(editor, 0, 0, "import typing 😀\n");
  await insert(editor, 2, 7, " + 0");
  await insert(editor, 9, 0, "end = 1");
  const typed = document.getText();
  await go();
  await running;
  equal(
    sessions.last?.hunks.map(({ state }) => state),
    ["dropped", "applied"],
  );
  equal(document.getText(), typed.replace("row_5 = 5\nrow_6 = 6", "rows = 5, 6"));
  await undo();
  equal(document.getText(), typed);
});

test("typing all the while, with every event, loses no letter", async () => {
  const hunks = Array.from({ length: 8 }, (_, n) => ({ old: { start_line: n, end_line: n + 1 }, text: `ROW ${n}\n` }));
  await script({ hunks, pace: 5 });
  const editor = await openText(`${ROWS}typed: \n`);
  const running = edit();
  let text = "";
  for (let n = 0; n < 40; n += 1) {
    const typed = async (): Promise<boolean> => {
      const place = editor.document.positionAt(editor.document.getText().length - 1);
      return editor.edit((builder) => {
        builder.insert(place, `${n % 10}`);
      });
    };
    await until(typed, "the editor takes a letter"); // it does not if the document has just changed
    text += `${n % 10}`;
  }
  await running;
  equal(editor.document.getText(), `${ROWS.replace(/row_(\d) = \d/g, "ROW $1")}typed: ${text}\n`);
});

test("stopping ends the request at once and leaves the document as it was", async () => {
  await script({ hunks: TWO, hold: 5 });
  const { document } = await openText(ROWS);
  const running = edit();
  await until(async () => (await asked("/v1/edits")).length === 1, "the request");
  await until(async () => (await api()).sessions.of(document)?.hunks.length === 1, "a hunk");
  await command("stop");
  await running;
  equal(document.getText(), ROWS);
  await until(async () => (await asked("/v1/edits"))[0]?.ended === "cut", "the connection is closed");
});

test("when the service dies on the way nothing is changed, and whole hunks can be applied", async () => {
  await script({ hunks: TWO, cut: 7 });
  const { document } = await openText(ROWS);
  await edit();
  const session = (await api()).sessions.of(document);
  equal(document.getText(), ROWS);
  equal(session?.phase, "proposed");
  await command("acceptAll");
  equal(document.getText(), ROWS.replace("row_1 = 1", "row_1 = 'one'"));
  await undo();
  equal(document.getText(), ROWS);
  await connected();
});

test("a newer edit of the same document ends the older one", async () => {
  await script({ hunks: TWO, hold: 5 });
  const { document } = await openText(ROWS);
  const older = edit();
  await until(async () => (await api()).sessions.of(document)?.hunks.length === 1, "a hunk");
  await script({ hunks: TWO });
  await edit();
  await older;
  equal(document.getText(), TWICE);
});

test("closing the document ends the edit, and saving it does not touch it", async () => {
  await script({ hunks: TWO, hold: 5 });
  const editor = await openFile("several-hunks.py");
  const base = editor.document.getText();
  const running = edit();
  await until(async () => (await api()).sessions.of(editor.document)?.hunks.length === 1, "a hunk");
  await editor.document.save();
  equal(editor.document.getText(), base, "saved");
  await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  await running;
  await until(async () => (await asked("/v1/edits"))[0]?.ended === "cut", "the connection is closed");
  equal((await openFile("several-hunks.py")).document.getText(), base);
});

test("a file that is reverted under an edit keeps what is on the disk", async () => {
  await script({ hunks: [{ old: { start_line: 0, end_line: 1 }, text: "changed\n" }], hold: 5 });
  const editor = await openFile("one-line.py");
  const base = editor.document.getText();
  await insert(editor, 0, 0, "# typed ");
  const running = edit();
  await until(async () => (await api()).sessions.of(editor.document)?.hunks.length === 1, "a hunk");
  await vscode.commands.executeCommand("workbench.action.files.revert");
  await go();
  await running;
  equal(editor.document.getText(), base);
});

test("a read-only document is refused before anything is sent", async () => {
  const provider: vscode.FileSystemProvider = {
    onDidChangeFile: new vscode.EventEmitter<vscode.FileChangeEvent[]>().event,
    watch: () => new vscode.Disposable(() => undefined),
    stat: () => ({ type: vscode.FileType.File, ctime: 0, mtime: 0, size: 6 }),
    readDirectory: () => [],
    createDirectory: () => undefined,
    readFile: () => new TextEncoder().encode("a = 1\n"),
    writeFile: () => undefined,
    delete: () => undefined,
    rename: () => undefined,
  };
  const registered = vscode.workspace.registerFileSystemProvider("locked", provider, { isReadonly: true });
  await script({ hunks: [{ old: { start_line: 0, end_line: 1 }, text: "b\n" }] });
  const editor = await vscode.window.showTextDocument(vscode.Uri.parse("locked:/file.py"));
  await edit();
  equal(editor.document.getText(), "a = 1\n");
  equal((await asked("/v1/edits")).length, 0);
  registered.dispose();
});

test("a notebook cell is edited like a file", async () => {
  await script({ hunks: [{ old: { start_line: 0, end_line: 1 }, text: "a = 2\n" }] });
  const cell = new vscode.NotebookCellData(vscode.NotebookCellKind.Code, "a = 1\nb = 1", "python");
  const notebook = await vscode.workspace.openNotebookDocument("jupyter-notebook", new vscode.NotebookData([cell]));
  const { document } = notebook.cellAt(0);
  const options = { granularity: "line", speculation: true } as const;
  const body = { uri: document.uri.toString(), language_id: "python", version: 1, text: document.getText() };
  const { sessions } = await api();
  await sessions.start(document, () => ({ document: body, instruction: "Edit it.", mode: "edit", options }));
  equal(document.getText(), "a = 2\nb = 1");
  const session = sessions.of(document);
  if (session !== undefined) {
    await sessions.reject(session, session.open);
  }
  equal(document.getText(), "a = 1\nb = 1");
});

test("hunks all over a file of 3,000 lines find their places, and one undo takes all back", async () => {
  const line = (n: number): string => `\tvalue_${n} = compute("é😀", ${n})`;
  const base = Array.from({ length: 3_000 }, (_, n) => line(n)).join("\r\n");
  const hunks = Array.from({ length: 300 }, (_, n) => ({
    old: { start_line: 10 * n, end_line: 10 * n + (n % 3) },
    text: n % 3 === 2 ? "" : `\tnew_${n} = 1\r\n`,
  }));
  const lines = base.split("\r\n").map((text, n, { length }) => text + (n < length - 1 ? "\r\n" : ""));
  for (const { old, text } of [...hunks].reverse()) {
    lines.splice(old.start_line, old.end_line - old.start_line, text);
  }
  await script({ hunks });
  const { document } = await openText(base);
  equal(document.eol, vscode.EndOfLine.CRLF);
  await edit();
  equal(document.getText(), lines.join(""));
  await command("rejectAll");
  equal(document.getText(), base);
  await undo();
  equal(document.getText(), lines.join(""));
});

test("a code block is applied without its fence", async () => {
  await script({ hunks: TWO });
  const { document } = await openText(ROWS);
  await command("apply", { code: "Like this:\n```python\nrow_1 = 'one'\n# ...\n```\n" });
  const [asking] = await asked("/v1/edits");
  equal([asking?.body["mode"], asking?.body["update"]], ["apply", "row_1 = 'one'\n# ..."]);
  equal(document.getText(), TWICE);
});

const type = async (text: string): Promise<void> => {
  await vscode.commands.executeCommand("type", { text });
};

/** Typing goes to the cursor of the editor itself. */
async function typing(content: string): Promise<vscode.TextEditor> {
  const editor = await openText(content);
  await vscode.commands.executeCommand("workbench.action.focusActiveEditorGroup");
  await vscode.commands.executeCommand("cursorBottom");
  return editor;
}

test("what is filled in shows at the cursor and is taken; typing along asks nothing new", async () => {
  await script({ infill: "turn 变量 + 1" });
  const { document } = await typing("def f(变量):\n    ");
  await type("re");
  await until(async () => (await asked("/infill")).some(({ ended }) => ended === "whole"), "an answer");
  await pause(200);
  for (const letter of "turn ") {
    await type(letter);
    await pause(120);
  }
  equal((await asked("/infill")).length, 1, "requests");
  await vscode.commands.executeCommand("editor.action.inlineSuggest.commit");
  equal(document.getText(), "def f(变量):\n    return 变量 + 1");
  const [asking] = await asked("/infill");
  equal([asking?.body["input_prefix"], asking?.body["prompt"]], ["def f(变量):\n", "    re"]);
});

test("of letters typed fast only the last is asked for, and no more when typing goes on", async () => {
  await script({ infill: "x", latency: 60_000 });
  await typing("a = 1\n");
  for (let n = 0; n < 30; n += 1) {
    await type("b");
  }
  const open = async (): Promise<unknown[]> =>
    (await asked("/infill")).filter(({ ended }) => ended === undefined).map(({ body }) => body["prompt"]);
  await until(async () => (await open()).includes("b".repeat(30)), "a request for all that was typed");
  equal(await open(), ["b".repeat(30)], "in flight");
  await type("b");
  await until(async () => !(await open()).includes("b".repeat(30)), "the old request is closed");
});

for (const trouble of ["401", "501", "html", "invalid", "error", "hang"]) {
  test(`with trouble (${trouble}) typing asks no more, and completions come back afterwards`, async () => {
    const { service } = await api();
    await typing(`trouble = "${trouble}"\n`); // whose warm-up would meet the trouble first
    await until(async () => (await asked("/v1/edits/warm")).length === 1, "a warm-up");
    await script({ trouble });
    await type("c");
    await until(async () => (await asked("/infill")).length === 1, "a request");
    if (trouble !== "hang") {
      await until(() => !service.willing || service.withoutCompletion !== undefined, "the trouble is noticed");
      for (let n = 0; n < 5; n += 1) {
        await type("c");
        await pause(150);
      }
      equal((await asked("/infill")).length, 1, "requests");
    }
    await script({ infill: "whole" });
    await service.check();
    await until(() => service.willing && service.withoutCompletion === undefined, "the service is back");
    await type("d");
    await until(async () => (await asked("/infill")).some(({ ended }) => ended === "whole"), "an answer");
  });
}

for (const trouble of ["501", "foreign"]) {
  test(`a service that cannot warm up (${trouble}) is not asked to again and again, and still completes`, async () => {
    const { service, status } = await api();
    await script({ trouble });
    let shown = status.text;
    const changes: string[] = [];
    const watch = service.onDidChange(() => {
      if (status.text !== shown) {
        changes.push((shown = status.text));
      }
    });
    await typing(`trouble = "warm ${trouble}"\n`);
    await until(async () => (await asked("/v1/edits/warm")).length === 1, "a warm-up");
    await pause(1_500);
    watch.dispose();
    equal((await asked("/v1/edits/warm")).length, 1, "warm-ups");
    equal([service.willing, service.withoutCompletion], [true, undefined]);
    equal(changes, [], "the status item stays as it is");
  });
}

test("after a rename the next place is offered: Tab goes there, Tab again makes the change", async () => {
  const base = `${"x = 1\n".repeat(3)}${"\n".repeat(20)}print(x)\n`;
  await script({ hunks: [{ old: { start_line: 23, end_line: 24 }, text: "print(y)\n" }] });
  const editor = await openText(base);
  const { nextEdit } = await api();
  await editor.edit((builder) => {
    builder.replace(new vscode.Range(0, 0, 0, 1), "y");
  });
  await until(() => nextEdit.hunk !== undefined, "an offer");
  const [asking] = await asked("/v1/edits");
  equal(asking?.body["mode"], "next_edit");
  await command("acceptNextEdit");
  equal(editor.selection.active.line, 23);
  equal(editor.document.lineAt(23).text, "print(x)");
  await command("acceptNextEdit");
  equal(editor.document.lineAt(23).text, "print(y)");
  await undo();
  equal(editor.document.lineAt(23).text, "print(x)");
});

test("a document is computed ahead when it is opened", async () => {
  await openFile("tabs.py");
  await until(async () => (await asked("/v1/edits/warm")).length === 1, "a warm-up");
  const [asking] = await asked("/v1/edits/warm");
  equal(Object.keys(asking?.body ?? {}), ["document"]);
});

test("the status item tells how fast the last edit was", async () => {
  await script({ hunks: TWO, pace: 10 });
  await openText(ROWS);
  await edit();
  const { status } = await api();
  equal(/^\$\(zap\) \d+ t\/s · 80 %$/.test(status.text), true, status.text);
});
