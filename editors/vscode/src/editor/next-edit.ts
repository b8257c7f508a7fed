/** After a change, the place where the same change goes next: Tab goes there, Tab again makes it. */

import * as vscode from "vscode";
import { Edit } from "../core/edit";
import { EditHistory } from "../core/history";
import type { Hunk } from "../core/hunks";
import { Latest } from "../core/latest";
import { bodyOf, changesOf, isEdited, placeOf } from "./documents";
import type { Service } from "./service";
import { settings } from "./settings";

const PAUSE = 600; // milliseconds without a change
const CONTEXT = "lookupSpec.nextEdit";

interface Offer {
  readonly document: vscode.TextDocument;
  readonly edit: Edit;
}

export class NextEdit implements vscode.Disposable {
  private readonly histories = new Map<string, EditHistory>();
  private readonly latest = new Latest();
  private offer: Offer | undefined;
  private applying = false;
  private readonly target = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("editor.wordHighlightBackground"),
    after: { margin: "0 0 0 1.5em", color: new vscode.ThemeColor("charts.green") },
  });
  private readonly pointer = vscode.window.createTextEditorDecorationType({
    after: { margin: "0 0 0 2em", color: new vscode.ThemeColor("editorCodeLens.foreground"), fontStyle: "italic" },
  });
  private readonly disposables: vscode.Disposable[];

  /** @param isBusy whether a document has an edit running or to be decided on. */
  constructor(
    private readonly service: Service,
    private readonly isBusy: (document: vscode.TextDocument) => boolean,
  ) {
    this.disposables = [
      this.target,
      this.pointer,
      vscode.workspace.onDidChangeTextDocument((event) => {
        this.changed(event);
      }),
      vscode.workspace.onDidOpenTextDocument((document) => {
        this.open(document);
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.histories.delete(document.uri.toString());
        if (this.offer?.document === document) {
          this.dismiss();
        }
      }),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor.document === this.offer?.document) {
          this.paint();
        }
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.dismiss();
      }),
    ];
    vscode.workspace.textDocuments.forEach((document) => {
      this.open(document);
    });
  }

  /** What is offered, for those who want to know. */
  get hunk(): Hunk | undefined {
    return this.offer?.edit.hunks.open[0];
  }

  /** Goes to the place; makes the change if the cursor is there already. */
  async accept(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const { hunk, offer } = this;
    if (hunk === undefined || offer === undefined || editor?.document !== offer.document) {
      return;
    }
    const range = this.range(offer.document, hunk);
    if (!isAt(range, editor.selection.active)) {
      editor.selection = new vscode.Selection(range.start, range.start);
      editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
      return;
    }
    const { document } = offer;
    const edit = new vscode.WorkspaceEdit();
    const span = new vscode.Range(document.positionAt(hunk.span.start), document.positionAt(hunk.span.end));
    edit.replace(document.uri, span, hunk.after);
    this.dismiss();
    this.applying = true;
    try {
      await vscode.workspace.applyEdit(edit);
    } finally {
      this.applying = false;
    }
  }

  dismiss(): void {
    this.latest.end();
    if (this.offer !== undefined) {
      this.offer.edit.cancel();
      this.offer = undefined;
      this.paint();
    }
  }

  /** Seeks the next change now. */
  async seek(document: vscode.TextDocument, pause = 0): Promise<void> {
    const diffs = this.histories.get(document.uri.toString())?.diffs ?? [];
    const editor = vscode.window.activeTextEditor;
    if (diffs.length === 0 || editor?.document !== document || this.isBusy(document)) {
      return;
    }
    this.dismiss();
    await this.latest.run(pause, new AbortController().signal, async (signal) => {
      const edit = new Edit({
        document: bodyOf(document),
        mode: "next_edit",
        edit_history: diffs,
        cursor: placeOf(editor.selection.active),
        options: { granularity: "hunk", speculation: settings().speculation },
      });
      signal.addEventListener("abort", () => {
        edit.cancel();
      });
      const { version } = document;
      const ending = await edit.run(this.service.client, () => {
        const [hunk] = edit.hunks.all;
        if (hunk !== undefined) {
          edit.cancel(); // one is enough
        }
      });
      if (signal.aborted || document.version !== version || ending.kind === "failed") {
        return;
      }
      this.offer = edit.hunks.open.length > 0 ? { document, edit } : undefined;
      this.paint();
    });
  }

  dispose(): void {
    this.dismiss();
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private open(document: vscode.TextDocument): void {
    if (isEdited(document)) {
      this.histories.set(document.uri.toString(), new EditHistory(document.getText()));
    }
  }

  private changed(event: vscode.TextDocumentChangeEvent): void {
    const { document, contentChanges } = event;
    const [change] = contentChanges;
    const history = this.histories.get(document.uri.toString());
    if (change === undefined || history === undefined) {
      return;
    }
    const text = document.getText();
    history.changed(text, change.range.start.line);
    if (this.offer?.document === document) {
      this.offer.edit.hunks.changed(changesOf(event), text);
      this.dismiss();
    }
    const undone = event.reason !== undefined;
    const typed = document === vscode.window.activeTextEditor?.document && (!this.isBusy(document) || this.applying);
    if (typed && !undone && this.service.willing && settings().nextEdit && history.replaces) {
      void this.seek(document, PAUSE);
    } else {
      this.latest.end();
    }
  }

  private paint(): void {
    const { hunk, offer } = this;
    for (const editor of vscode.window.visibleTextEditors) {
      if (hunk === undefined || editor.document !== offer?.document) {
        editor.setDecorations(this.target, []);
        editor.setDecorations(this.pointer, []);
        continue;
      }
      const range = this.range(editor.document, hunk);
      const there = isAt(range, editor.selection.active);
      const [line = ""] = hunk.after.split(/\r\n|\r|\n/);
      const contentText = hunk.after === "" ? "→ (removed)" : `→ ${line.trim().slice(0, 100)}`;
      const hoverMessage = new vscode.MarkdownString().appendCodeblock(hunk.after, editor.document.languageId);
      editor.setDecorations(this.target, [{ range, hoverMessage, renderOptions: { after: { contentText } } }]);
      const way = range.start.line < editor.selection.active.line ? "↑" : "↓";
      const hint = there ? "Tab accepts" : `${way} Tab goes to line ${range.start.line + 1}, where this goes on`;
      const end = editor.document.lineAt(editor.selection.active.line).range.end;
      const pointers = there
        ? []
        : [{ range: new vscode.Range(end, end), renderOptions: { after: { contentText: hint } } }];
      editor.setDecorations(this.pointer, pointers);
    }
    void vscode.commands.executeCommand("setContext", CONTEXT, hunk !== undefined);
  }

  private range(document: vscode.TextDocument, hunk: Hunk): vscode.Range {
    const start = document.positionAt(hunk.span.start);
    const end = document.positionAt(Math.max(hunk.span.start, hunk.span.end - 1));
    return new vscode.Range(start, end);
  }
}

function isAt(range: vscode.Range, { line }: vscode.Position): boolean {
  return line >= range.start.line && line <= range.end.line;
}
