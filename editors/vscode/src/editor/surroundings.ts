/** Other files that a completion may go by: those seen lately, around where the cursor was. */

import * as vscode from "vscode";
import type { InfillRequest } from "../core/protocol";
import { isEdited } from "./documents";

const FILES = 3;
const LETTERS = 1_500; // of each: more takes a slow machine longer to read than it helps
const SEEN = 12;

interface Seen {
  readonly document: vscode.TextDocument;
  readonly line: number;
}

export class Surroundings implements vscode.Disposable {
  private seen: readonly Seen[] = [];
  private readonly disposables: vscode.Disposable[];

  constructor() {
    this.disposables = [
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        this.see(textEditor);
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.seen = this.seen.filter((other) => other.document !== document);
      }),
    ];
    vscode.window.visibleTextEditors.forEach((editor) => {
      this.see(editor);
    });
  }

  /** In an order that does not change with what is looked at: the service has computed what comes first already. */
  around(document: vscode.TextDocument): InfillRequest["input_extra"] {
    return this.seen
      .filter((other) => other.document !== document && !other.document.isClosed && isEdited(other.document))
      .slice(0, FILES)
      .map(({ document: other, line }) => ({
        filename: vscode.workspace.asRelativePath(other.uri),
        text: part(other, line),
      }))
      .filter(({ text }) => text.trim() !== "")
      .sort((one, other) => (one.filename < other.filename ? -1 : 1));
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private see({ document, selection }: vscode.TextEditor): void {
    const rest = this.seen.filter((other) => other.document !== document);
    this.seen = [{ document, line: selection.active.line }, ...rest].slice(0, SEEN);
  }
}

/** Whole lines around one, from a place that moves in steps only. */
function part(document: vscode.TextDocument, line: number): string {
  const first = Math.max(0, Math.floor((line - 15) / 15) * 15);
  const lines: string[] = [];
  let letters = 0;
  for (let at = first; at < document.lineCount && letters < LETTERS; at += 1) {
    const { text } = document.lineAt(at);
    letters += text.length + 1;
    lines.push(text);
  }
  return `${lines.join("\n").slice(0, LETTERS)}\n`;
}
