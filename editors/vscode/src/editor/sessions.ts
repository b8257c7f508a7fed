/** All edits: at most one for each document. */

import * as vscode from "vscode";
import type { Ending } from "../core/edit";
import type { Hunk } from "../core/hunks";
import type { EditRequest } from "../core/protocol";
import { nameOf, whyReadOnly } from "./documents";
import { Looks } from "./looks";
import { idsOf, EditSession } from "./session";
import type { Service } from "./service";

const REPAINT = 40; // milliseconds: a fast stream has more events than anybody can see

export class Sessions implements vscode.Disposable, vscode.CodeLensProvider {
  private readonly sessions = new Map<string, EditSession>();
  private readonly looks = new Looks();
  private readonly changes = new vscode.EventEmitter<EditSession>();
  readonly onDidChange = this.changes.event;
  private readonly lensChanges = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.lensChanges.event;
  private readonly paints = new Map<string, { last: number; timer: ReturnType<typeof setTimeout> | undefined }>();
  private readonly disposables: vscode.Disposable[];
  /** The latest edit, over or not. */
  last: EditSession | undefined;

  /** @param canStart whether a service can be started from here. */
  constructor(
    private readonly service: Service,
    private readonly canStart: boolean,
  ) {
    this.disposables = [
      this.looks,
      this.changes,
      this.lensChanges,
      vscode.languages.registerCodeLensProvider({ pattern: "**" }, this),
      vscode.workspace.onDidChangeTextDocument((event) => {
        this.of(event.document)?.documentChanged(event);
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.forget(document);
      }),
      vscode.window.tabGroups.onDidChangeTabs(({ closed }) => {
        for (const { input } of closed) {
          if (input instanceof vscode.TabInputText) {
            this.tabClosed(input.uri);
          }
        }
      }),
      vscode.window.onDidChangeVisibleTextEditors((editors) => {
        for (const { document } of editors) {
          this.looks.show(document, this.of(document));
        }
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.tellContext();
      }),
      vscode.window.onDidChangeTextEditorSelection(() => {
        this.tellContext();
      }),
    ];
  }

  of(document: vscode.TextDocument): EditSession | undefined {
    return this.sessions.get(document.uri.toString());
  }

  /**
   * Runs an edit to the end of its stream, and tells the user what they would not see by themselves.
   *
   * @param request makes the request, from the document as it then is.
   */
  async start(document: vscode.TextDocument, request: () => EditRequest): Promise<void> {
    const problem = await whyReadOnly(document);
    if (problem !== undefined) {
      void vscode.window.showErrorMessage(problem);
      return;
    }
    this.of(document)?.end();
    const session: EditSession = new EditSession(document, request(), () => {
      this.changed(session);
    });
    this.sessions.set(document.uri.toString(), session);
    this.last = session;
    this.changed(session);
    try {
      await session.run(this.service.client);
    } catch (error) {
      session.end();
      void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
      return;
    }
    this.report(session);
  }

  /** The hunk at the cursor, or else the next one below it, or the first. */
  at(editor: vscode.TextEditor): Hunk | undefined {
    const open = this.of(editor.document)?.open ?? [];
    const { line } = editor.selection.active;
    const lastLine = ({ span }: Hunk): number => editor.document.positionAt(Math.max(span.start, span.end - 1)).line;
    return open.find((hunk) => lastLine(hunk) >= line) ?? open[0];
  }

  /** Moves to the next hunk, or the one before. */
  go(editor: vscode.TextEditor, by: 1 | -1): void {
    const lines = (this.of(editor.document)?.open ?? []).map(({ span }) => editor.document.positionAt(span.start).line);
    const { line } = editor.selection.active;
    const target =
      by === 1
        ? (lines.find((other) => other > line) ?? lines[0])
        : (lines.findLast((other) => other < line) ?? lines.at(-1));
    if (target !== undefined) {
      const place = new vscode.Position(target, 0);
      editor.selection = new vscode.Selection(place, place);
      editor.revealRange(new vscode.Range(place, place), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    }
  }

  /** Says yes to hunks: applied ones stay, proposed ones are applied and stay. */
  async accept(session: EditSession, hunks: readonly Hunk[]): Promise<void> {
    await session.turn(idsOf(hunks.filter(({ state }) => state === "proposed")));
    const ids = idsOf(hunks);
    session.keep(session.open.filter(({ id }) => ids.has(id)));
  }

  /** Says no to hunks: applied ones are taken back, proposed ones go. */
  async reject(session: EditSession, hunks: readonly Hunk[]): Promise<void> {
    session.keep(hunks.filter(({ state }) => state === "proposed"));
    await session.turn(idsOf(hunks.filter(({ state }) => state === "applied")));
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const session = this.of(document);
    if (session === undefined || session.phase === "over" || session.phase === "streaming") {
      return [];
    }
    const { open, phase } = session;
    const [yes, no] =
      phase === "applied" ? ["$(check) Keep", "$(discard) Take back"] : ["$(check) Apply", "$(trash) Discard"];
    return open.flatMap((hunk, n) => {
      const place = document.positionAt(hunk.span.start);
      const range = new vscode.Range(place, place);
      const lens = (title: string, command: string, ...args: unknown[]): vscode.CodeLens =>
        new vscode.CodeLens(range, { title, command, arguments: args });
      const one = [lens(yes, "lookupSpec.accept", hunk.id), lens(no, "lookupSpec.reject", hunk.id)];
      const all = [
        lens(`${yes} all ${open.length}`, "lookupSpec.acceptAll"),
        lens(`${no} all`, "lookupSpec.rejectAll"),
        lens("$(diff) Compare", "lookupSpec.compare"),
      ];
      return n === 0 && open.length > 1 ? [...one, ...all] : n === 0 ? [...one, ...all.slice(2)] : one;
    });
  }

  dispose(): void {
    for (const session of this.sessions.values()) {
      session.edit.cancel();
    }
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private changed(session: EditSession): void {
    const id = session.document.uri.toString();
    if (this.sessions.get(id) === session && session.phase === "over") {
      this.sessions.delete(id);
    }
    this.repaint(session.document);
    if (session.phase !== "streaming") {
      this.lensChanges.fire();
    }
    this.tellContext();
    this.changes.fire(session);
  }

  /** At once if nothing was painted lately, else a little later. */
  private repaint(document: vscode.TextDocument): void {
    const id = document.uri.toString();
    const paint = this.paints.get(id) ?? { last: 0, timer: undefined };
    this.paints.set(id, paint);
    if (paint.timer !== undefined) {
      return;
    }
    const now = (): void => {
      paint.timer = undefined;
      paint.last = Date.now();
      const session = this.of(document);
      this.looks.show(document, session);
      if (session === undefined) {
        this.paints.delete(id);
      }
    };
    const wait = paint.last + REPAINT - Date.now();
    if (wait <= 0) {
      now();
    } else {
      paint.timer = setTimeout(now, wait);
    }
  }

  private context = "";

  /** What the key bindings go by. */
  private tellContext(): void {
    const editor = vscode.window.activeTextEditor;
    const phase = (editor && this.of(editor.document)?.phase) ?? "over";
    if (phase !== this.context) {
      this.context = phase;
      void vscode.commands.executeCommand("setContext", "lookupSpec.phase", phase);
    }
  }

  private tabClosed(uri: vscode.Uri): void {
    const shown = vscode.window.tabGroups.all.some(({ tabs }) =>
      tabs.some(({ input }) => input instanceof vscode.TabInputText && input.uri.toString() === uri.toString()),
    );
    const session = this.sessions.get(uri.toString());
    if (!shown && session?.phase === "streaming") {
      session.end();
    }
  }

  private forget(document: vscode.TextDocument): void {
    this.of(document)?.end();
    this.sessions.delete(document.uri.toString());
  }

  private report(session: EditSession): void {
    const { ending } = session.edit;
    if (ending?.failure !== undefined) {
      this.service.noticed(ending.failure);
    } else if (!this.service.online) {
      void this.service.check();
    }
    const name = nameOf(session.document);
    const dropped = session.hunks.filter(({ state }) => state === "dropped");
    if (dropped.length > 0 && ending?.kind !== "cancelled") {
      const lines = dropped.map((hunk) => hunk.lines.start_line + 1).join(", ");
      const many = dropped.length === 1 ? "One change was" : `${dropped.length} changes were`;
      const said = `${many} left out of ${name}, because you edited there (line ${lines} as it was).`;
      void offer(vscode.window.showInformationMessage(said, "Show Details"), { "Show Details": "lookupSpec.details" });
    }
    switch (ending?.kind) {
      case "unchanged":
        vscode.window.setStatusBarMessage(`${name}: ${ending.message}`, 5_000);
        break;
      case "failed":
        void this.tell(session, ending);
        break;
      case "partial":
        void (session.open.length === 0 ? this.tell(session, ending) : this.propose(session, ending));
        break;
      default:
    }
  }

  /** Says why nothing was done, and what to do about it. */
  private async tell({ document }: EditSession, { message, failure }: Ending): Promise<void> {
    const ways: Record<string, string> =
      failure?.kind === "offline" && this.canStart
        ? { "Start a Service": "lookupSpec.startService" }
        : failure?.kind === "unauthorized"
          ? { "Set the API Key": "lookupSpec.setKey" }
          : {};
    const said = `${nameOf(document)} is as it was. ${message}`;
    await offer(vscode.window.showErrorMessage(said, ...Object.keys(ways)), ways);
  }

  private async propose(session: EditSession, { message }: Ending): Promise<void> {
    const { length } = session.open;
    const whole = length === 1 ? "One change is whole" : `${length} changes are whole`;
    const said = `The edit of ${nameOf(session.document)} is incomplete: ${message} ${whole}, and none is applied.`;
    const choice = await vscode.window.showWarningMessage(said, "Apply", "Discard");
    if (choice === "Apply") {
      await session.turn(idsOf(session.open));
    } else if (choice === "Discard") {
      session.keep(session.open);
    }
  }
}

async function offer(choice: Thenable<string | undefined>, commands: Readonly<Record<string, string>>): Promise<void> {
  const command = commands[(await choice) ?? ""];
  if (command !== undefined) {
    await vscode.commands.executeCommand(command);
  }
}
