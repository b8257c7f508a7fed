/** How a running or applied edit looks in the text. */

import * as vscode from "vscode";
import { beside } from "../core/beside";
import type { Hunk } from "../core/hunks";
import type { EditSession } from "./session";

const MOST = 100; // letters of a line that is shown beside another
// Colours of the editor itself: those of an extension, git's for one, are transparent where it is not there.
const color = (name: string): vscode.ThemeColor => new vscode.ThemeColor(name);
const ruler = (name: string): vscode.DecorationRenderOptions => ({
  overviewRulerColor: color(name),
  overviewRulerLane: vscode.OverviewRulerLane.Left,
});

const STYLES = {
  /** Lines that the edit has come past. */
  settled: {
    isWholeLine: true,
    borderWidth: "0 0 0 2px",
    borderStyle: "solid",
    borderColor: color("progressBar.background"),
  },
  /** Where it is. */
  front: {
    isWholeLine: true,
    backgroundColor: color("editor.rangeHighlightBackground"),
    after: { margin: "0 0 0 3em", color: color("editorCodeLens.foreground") },
  },
  going: {
    backgroundColor: color("diffEditor.removedLineBackground"),
    ...ruler("editorOverviewRuler.deletedForeground"),
  },
  coming: {
    after: {
      color: color("charts.green"),
      backgroundColor: color("diffEditor.insertedLineBackground"),
    },
  },
  added: {
    isWholeLine: true,
    backgroundColor: color("diffEditor.insertedLineBackground"),
    ...ruler("editorOverviewRuler.addedForeground"),
  },
  was: {
    after: {
      margin: "0 0 0 2em",
      color: color("charts.red"),
      textDecoration: "line-through",
      fontStyle: "italic",
    },
  },
  gone: {
    isWholeLine: true,
    borderWidth: "1px 0 0 0",
    borderStyle: "dashed",
    borderColor: color("charts.red"),
    after: { margin: "0 0 0 2em", color: color("charts.red"), fontStyle: "italic" },
    ...ruler("editorOverviewRuler.deletedForeground"),
  },
} satisfies Record<string, vscode.DecorationRenderOptions>;

type Style = keyof typeof STYLES;
type Painted = Record<Style, vscode.DecorationOptions[]>;

/** Puts edits into the editors that show their documents. */
export class Looks implements vscode.Disposable {
  private readonly types = Object.entries(STYLES).map(
    ([name, style]) => [name as Style, vscode.window.createTextEditorDecorationType(style)] as const,
  );

  show(document: vscode.TextDocument, session: EditSession | undefined): void {
    const painted = session === undefined ? nothing() : paint(session);
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document === document) {
        for (const [name, type] of this.types) {
          editor.setDecorations(type, painted[name]);
        }
      }
    }
  }

  dispose(): void {
    for (const [, type] of this.types) {
      type.dispose();
    }
  }
}

function nothing(): Painted {
  return { settled: [], front: [], going: [], coming: [], added: [], was: [], gone: [] };
}

function paint(session: EditSession): Painted {
  const painted = nothing();
  const { document, edit } = session;
  for (const [n, hunk] of session.open.entries()) {
    if (hunk.state === "proposed") {
      const next = session.open[n + 1];
      const until = next === undefined ? document.lineCount : document.positionAt(next.span.start).line;
      paintProposed(painted, document, hunk, until);
    } else {
      paintApplied(painted, document, hunk);
    }
  }
  if (session.phase !== "streaming") {
    return painted;
  }
  if (edit.growing !== undefined && edit.growing.text !== "") {
    const offset = edit.hunks.place(edit.growing.line);
    if (offset !== undefined) {
      const line = Math.max(0, document.positionAt(offset).line - 1);
      painted.coming.push(...coming(document, line, document.lineCount, edit.growing.text, true));
    }
  }
  const [from, to] = [edit.hunks.place(edit.firstLine), edit.hunks.place(edit.line)];
  if (from !== undefined && to !== undefined) {
    const [first, here] = [document.positionAt(from).line, document.positionAt(to).line];
    if (here > first) {
      painted.settled.push({ range: new vscode.Range(first, 0, here - 1, 0) });
    }
    const share = edit.lines === undefined || edit.lines === 0 ? 0 : edit.line / edit.lines;
    const label = edit.spent.tokens === 0 ? "reading…" : `${Math.round(100 * share)} %`;
    const contentText = edit.growing === undefined ? label : ""; // new lines are shown there
    painted.front.push({ range: new vscode.Range(here, 0, here, 0), renderOptions: { after: { contentText } } });
  }
  return painted;
}

/** @param until the line that the next hunk begins in. */
function paintProposed(painted: Painted, document: vscode.TextDocument, hunk: Hunk, until: number): void {
  const { start, end } = hunk.span;
  const { line } = document.positionAt(start);
  if (end > start) {
    painted.going.push({ range: linesOf(document, hunk), hoverMessage: told(hunk) });
  }
  if (hunk.after !== "") {
    const first = end > start ? line : Math.max(0, line - 1);
    const hoverMessage = told(hunk);
    painted.coming.push(...coming(document, first, until, hunk.after, false).map((one) => ({ ...one, hoverMessage })));
  }
}

function paintApplied(painted: Painted, document: vscode.TextDocument, hunk: Hunk): void {
  const [before, after] = [linesIn(hunk.before), linesIn(hunk.after)];
  const first = document.positionAt(hunk.span.start).line;
  if (after.length === 0) {
    const line = Math.min(first, document.lineCount - 1);
    const many = before.length === 1 ? "1 line removed" : `${before.length} lines removed`;
    const contentText = `${many}: ${short(before.find((text) => text.trim() !== "") ?? "")}`;
    const range = document.lineAt(line).range;
    painted.gone.push({ range, hoverMessage: told(hunk), renderOptions: { after: { contentText } } });
    return;
  }
  painted.added.push({ range: linesOf(document, hunk), hoverMessage: told(hunk) });
  if (before.length === after.length) {
    before.forEach((text, n) => {
      if (text !== after[n] && text.trim() !== "") {
        painted.was.push(was(document, first + n, short(text)));
      }
    });
  } else if (before.length > 0) {
    const more = before.length === 1 ? "" : ` (and ${before.length - 1} more)`;
    painted.was.push(was(document, first, `${short(before.find((text) => text.trim() !== "") ?? "")}${more}`));
  }
}

function was(document: vscode.TextDocument, line: number, contentText: string): vscode.DecorationOptions {
  return { range: document.lineAt(line).range, renderOptions: { after: { contentText } } };
}

/**
 * New lines, beside those of the document from `first` to `until`.
 *
 * @param growing their end is being written.
 */
function coming(
  document: vscode.TextDocument,
  first: number,
  until: number,
  text: string,
  growing: boolean,
): vscode.DecorationOptions[] {
  const line = Math.min(first, document.lineCount - 1);
  const lineAt = (n: number): string => document.lineAt(n).text;
  return beside(linesIn(text), lineAt, line, Math.max(1, until - line), growing).map((one) => ({
    range: document.lineAt(one.line).range,
    renderOptions: {
      after: { contentText: ` ${one.text} `.replaceAll(" ", "\u00a0"), margin: `0 0 0 ${one.gap}ch` },
    },
  }));
}

function linesOf(document: vscode.TextDocument, hunk: Hunk): vscode.Range {
  const start = document.positionAt(hunk.span.start);
  const end = document.positionAt(hunk.span.end);
  // Whole lines are decorated up to the one that the range ends in.
  return end.character === 0 && end.line > start.line
    ? new vscode.Range(start, document.lineAt(end.line - 1).range.end)
    : new vscode.Range(start, end);
}

function linesIn(text: string): string[] {
  const lines = text.split(/\r\n|\r|\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

function short(text: string): string {
  const one = text.trim().replaceAll("\t", " ");
  return one.length > MOST ? `${one.slice(0, MOST)}…` : one;
}

function told(hunk: Hunk): vscode.MarkdownString {
  const lines = [...linesIn(hunk.before).map((text) => `- ${text}`), ...linesIn(hunk.after).map((text) => `+ ${text}`)];
  return new vscode.MarkdownString().appendCodeblock(lines.join("\n"), "diff");
}
