/** The one item in the status bar: whether the service is there, what it does, and how fast. */

import * as vscode from "vscode";
import type { Spent } from "../core/edit";
import type { Service } from "./service";
import type { EditSession } from "./session";
import { settings } from "./settings";

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("lookupSpec", vscode.StatusBarAlignment.Right, 100);
  private readonly disposables: vscode.Disposable[];
  private session: EditSession | undefined;

  constructor(
    private readonly service: Service,
    onDidChangeSession: vscode.Event<EditSession>,
  ) {
    this.item.name = "lookup-spec";
    this.item.command = "lookupSpec.menu";
    this.disposables = [
      this.item,
      service.onDidChange(() => {
        this.show();
      }),
      onDidChangeSession((session) => {
        this.session = session;
        this.show();
      }),
    ];
    this.show();
    this.item.show();
  }

  /** What is shown, for those who want to know. */
  get text(): string {
    return this.item.text;
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private show(): void {
    const { state } = this.service;
    const { session } = this;
    const lines = [`**lookup-spec** at ${settings().url}`];
    this.item.backgroundColor = undefined;
    if (session?.phase === "streaming") {
      const { line, lines: all, spent } = session.edit;
      const share = all === undefined ? "" : ` ${Math.round((100 * line) / Math.max(1, all))} %`;
      this.item.text = `$(loading~spin) lookup-spec${share}${told(spent, " · ")}`;
      lines.push("Editing. Escape stops.");
    } else if (state.kind === "away") {
      this.item.text = state.failure.kind === "unauthorized" ? "$(key) lookup-spec" : "$(debug-disconnect) lookup-spec";
      lines.push(
        state.failure.message,
        "Edits and completions wait until it is there; this is looked into now and then.",
      );
    } else if (state.kind === "unknown") {
      this.item.text = "$(loading~spin) lookup-spec";
      lines.push("Connecting.");
    } else {
      const last = session === undefined ? "" : told(session.edit.spent, " ");
      this.item.text = `$(zap) ${last.trim() || "lookup-spec"}`;
      lines.push(`Model: ${state.model}`);
      if (last !== "") {
        lines.push("The figures are those of the last edit: tokens a second, and the part of them that was looked up.");
      }
      if (this.service.withoutCompletion !== undefined) {
        lines.push(`No completions: ${this.service.withoutCompletion}`);
      }
    }
    this.item.tooltip = new vscode.MarkdownString(lines.join("\n\n"));
    this.item.accessibilityInformation = { label: lines.join(" ").replaceAll("*", "") };
  }
}

/** Tokens a second and the share of tokens that were looked up. */
export function told({ tokens, accepted, seconds, firstToken }: Spent, before: string): string {
  const writing = seconds - (firstToken ?? seconds);
  if (tokens < 2 || writing <= 0) {
    return "";
  }
  return `${before}${Math.round(tokens / writing)} t/s · ${Math.round((100 * accepted) / tokens)} %`;
}
