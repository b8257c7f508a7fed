/** One edit of one document: it streams, is applied in one step, and is then kept or taken back hunk by hunk. */

import * as vscode from "vscode";
import type { Client } from "../core/client";
import { Edit } from "../core/edit";
import type { Hunk } from "../core/hunks";
import type { EditRequest } from "../core/protocol";
import { slept } from "../core/latest";
import { changesOf } from "./documents";

/**
 * - `streaming`: hunks are shown, and the document is as it was.
 * - `proposed`: the edit is incomplete; its whole hunks wait for the user to apply them.
 * - `applied`: the document has the new text; the user keeps hunks or takes them back.
 * - `over`: nothing is left to decide.
 */
export type Phase = "streaming" | "proposed" | "applied" | "over";

const TRYING = 15_000; // milliseconds, to apply between two keystrokes
const BREATH = 20; // milliseconds between two attempts

const NEVER = new AbortController().signal;

export class EditSession {
  readonly edit: Edit;
  private running = true;
  /** What the document becomes by a change of ours that is under way, so that it can be told from the user's. */
  private expected: { readonly text: string; readonly ids: ReadonlySet<number> } | undefined;

  /** @param changed called whenever there is something new to show. */
  constructor(
    readonly document: vscode.TextDocument,
    request: EditRequest,
    private readonly changed: () => void,
  ) {
    this.edit = new Edit(request);
  }

  get phase(): Phase {
    if (this.running) {
      return "streaming";
    }
    const [first] = this.edit.hunks.open;
    return first === undefined ? "over" : first.state === "proposed" ? "proposed" : "applied";
  }

  get hunks(): readonly Hunk[] {
    return this.edit.hunks.all;
  }

  get open(): readonly Hunk[] {
    return this.edit.hunks.open;
  }

  /** Runs to the end of the stream. A complete edit is then applied. */
  async run(client: Client): Promise<void> {
    const { kind } = await this.edit.run(client, this.changed);
    if (kind === "complete") {
      await this.turn(idsOf(this.open));
    } else if (kind !== "partial") {
      this.edit.hunks.settle(idsOf(this.open));
    }
    this.running = false;
    this.changed();
  }

  /** Stops the stream, or the review: what is applied stays, what is only proposed goes. */
  end(): void {
    this.edit.cancel();
    this.running = false;
    this.keep(this.open);
  }

  /** Follows the document. */
  documentChanged(event: vscode.TextDocumentChangeEvent): void {
    const text = this.document.getText();
    if (event.contentChanges.length === 0) {
      if (text === this.edit.hunks.text) {
        return; // only saved, or marked as changed
      }
      // Other line ends: nothing is where it was.
      this.edit.hunks.changed([{ start: 0, end: this.edit.hunks.text.length, text }], text);
    } else if (this.expected?.text === text) {
      this.edit.hunks.turn(this.expected.ids);
      this.expected = undefined;
    } else {
      const undone = event.reason === vscode.TextDocumentChangeReason.Undo;
      this.edit.hunks.changed(changesOf(event), text, undone);
    }
    this.changed();
  }

  /** Applied hunks stay for good; proposed ones are dropped. */
  keep(hunks: readonly Hunk[]): void {
    this.edit.hunks.settle(idsOf(hunks));
    this.changed();
  }

  /**
   * Applies proposed hunks, or takes applied ones back, in one step of undo.
   *
   * @throws Error the editor does not let the document be changed.
   */
  async turn(ids: ReadonlySet<number>): Promise<void> {
    for (const end = Date.now() + TRYING; Date.now() < end; await slept(BREATH, NEVER)) {
      const changes = this.edit.hunks.changesFor(ids);
      if (changes.length === 0) {
        return;
      }
      if (this.document.isClosed || this.document.getText() !== this.edit.hunks.text) {
        break; // places are of no use any more: better nothing than something at the wrong place
      }
      const expected = { text: this.edit.hunks.turned(ids), ids };
      const edit = new vscode.WorkspaceEdit();
      for (const { start, end, text } of changes) {
        const range = new vscode.Range(this.document.positionAt(start), this.document.positionAt(end));
        edit.replace(this.document.uri, range, text);
      }
      this.expected = expected;
      await vscode.workspace.applyEdit(edit);
      // Our change came by as an event; if not, the user's came first, and places have to be found anew.
      if (this.isDone()) {
        return;
      }
      this.expected = undefined;
    }
    throw new Error("The editor did not let the document be changed; nothing was done.");
  }

  private isDone(): boolean {
    return this.expected === undefined;
  }
}

export function idsOf(hunks: readonly Hunk[]): Set<number> {
  return new Set(hunks.map(({ id }) => id));
}
