/** What the extension needs to know of documents. */

import * as vscode from "vscode";
import type { DocumentBody, Position, Range } from "../core/protocol";
import type { Change } from "../core/spans";

const LONGEST = 400_000; // letters; longer documents are edited when asked for, but nothing is done for them unasked

/** Schemes of what is shown to be read: output, other revisions, and so on. */
const SHOWN = new Set([
  "output",
  "git",
  "debug",
  "vscode",
  "vscode-settings",
  "search-editor",
  "walkThrough",
  "comment",
]);

/** Whether somebody edits this, so that completions and computing ahead make sense. */
export function isEdited(document: vscode.TextDocument): boolean {
  return !SHOWN.has(document.uri.scheme) && !/(^|\/)\.env(\.|$)/.test(document.uri.path) && length(document) <= LONGEST;
}

/** Why a document cannot be edited; nothing if it can. */
export async function whyReadOnly(document: vscode.TextDocument): Promise<string | undefined> {
  const name = nameOf(document);
  const { scheme } = document.uri;
  const readOnly = `${name} is read-only; save a copy and edit that.`;
  if (SHOWN.has(scheme) || vscode.workspace.fs.isWritableFileSystem(scheme) === false) {
    return readOnly;
  }
  if (document.isUntitled || scheme === "vscode-notebook-cell") {
    return undefined;
  }
  try {
    const stat = await vscode.workspace.fs.stat(document.uri);
    return (stat.permissions ?? 0) & vscode.FilePermission.Readonly ? readOnly : undefined;
  } catch {
    return undefined; // not on disk (yet): then nothing protects it
  }
}

export function nameOf(document: vscode.TextDocument): string {
  return document.uri.path.split("/").at(-1) ?? document.uri.path;
}

export function bodyOf(document: vscode.TextDocument): DocumentBody {
  return {
    uri: document.uri.toString(),
    language_id: document.languageId,
    version: document.version,
    text: document.getText(),
    eol: document.eol === vscode.EndOfLine.CRLF ? "crlf" : "lf",
  };
}

/** A selection as a range of the protocol; nothing if nothing is selected. */
export function rangeOf(selection: vscode.Range): Range | undefined {
  return selection.isEmpty ? undefined : { start: placeOf(selection.start), end: placeOf(selection.end) };
}

export function placeOf({ line, character }: vscode.Position): Position {
  return { line, character };
}

/** What an event says was changed. The editor lists changes from the last to the first. */
export function changesOf(event: vscode.TextDocumentChangeEvent): Change[] {
  return [...event.contentChanges]
    .sort((one, other) => other.rangeOffset - one.rangeOffset)
    .map(({ rangeOffset, rangeLength, text }) => ({ start: rangeOffset, end: rangeOffset + rangeLength, text }));
}

function length(document: vscode.TextDocument): number {
  return document.offsetAt(document.lineAt(document.lineCount - 1).range.end);
}
