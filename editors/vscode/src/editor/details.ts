/** What the last edit was, what came of it and what it cost. */

import * as vscode from "vscode";
import type { Hunk } from "../core/hunks";
import { nameOf } from "./documents";
import type { EditSession } from "./session";
import type { Sessions } from "./sessions";

const REFRESH = 250; // milliseconds

const STATES: Readonly<Record<Hunk["state"], string>> = {
  proposed: "not applied",
  applied: "to be decided",
  kept: "kept",
  rejected: "taken back",
  dropped: "left out, because you edited there",
};

export class Details implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly registration: vscode.Disposable;

  constructor(private readonly sessions: Sessions) {
    this.registration = sessions.onDidChange(() => {
      this.timer ??= setTimeout(() => {
        this.timer = undefined;
        this.render();
      }, REFRESH);
    });
  }

  show(): void {
    if (this.panel === undefined) {
      const beside = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
      this.panel = vscode.window.createWebviewPanel("lookupSpecDetails", "lookup-spec: last edit", beside);
      this.panel.onDidDispose(() => {
        this.panel = undefined;
      });
    }
    this.panel.reveal(undefined, true);
    this.render();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.panel?.dispose();
    this.registration.dispose();
  }

  private render(): void {
    if (this.panel !== undefined) {
      const { last } = this.sessions;
      this.panel.webview.html = page(last === undefined ? "<p>There was no edit yet.</p>" : body(last));
    }
  }
}

function body(session: EditSession): string {
  const { edit, document, hunks } = session;
  const { spent, request } = edit;
  const writing = spent.seconds - (spent.firstToken ?? spent.seconds);
  const drafted = spent.accepted + spent.rejected;
  const figures: readonly (readonly [string, string, string])[] = [
    ["tokens", `${spent.tokens}`, "length of the model's answer"],
    ["tokens a second", writing > 0 ? (spent.tokens / writing).toFixed(0) : "–", "while it was writing"],
    ["looked up", share(spent.accepted, spent.tokens), "part of the answer that was proposed and confirmed"],
    ["proposals right", share(spent.accepted, drafted), "part of the proposed tokens that the model confirmed"],
    ["first change", seconds(spent.firstHunk), "after the request"],
    ["all", seconds(spent.seconds), "after the request"],
  ];
  const state = edit.ending === undefined ? "running" : edit.ending.message || edit.ending.kind;
  return [
    `<h1>${escaped(request.instruction ?? (request.mode === "apply" ? "Apply a code block" : "Next edit"))}</h1>`,
    `<p class="soft">${escaped(nameOf(document))} · ${escaped(edit.model || "no model yet")} · ${escaped(state)}</p>`,
    "<dl>",
    ...figures.map(([name, value, what]) => `<div title="${escaped(what)}"><dt>${name}</dt><dd>${value}</dd></div>`),
    "</dl>",
    answerView(session),
    ...hunks.map(hunkView),
  ].join("\n");
}

/** What the model wrote: looked up tokens coloured, and a bar where each forward pass begins. */
function answerView({ edit: { passes } }: EditSession): string {
  if (passes.length === 0) {
    return "";
  }
  const token = ({ text, source }: { text: string; source: string }): string =>
    source === "" ? escaped(text) : `<mark title="${escaped(source)}">${escaped(text)}</mark>`;
  const written = passes.map((tokens, n) => `<i title="pass ${n + 1}"></i>${tokens.map(token).join("")}`).join("");
  const key = "coloured: looked up and confirmed; plain: the model's own; a bar begins each forward pass";
  return `<h2>The answer <span class="soft">${key}</span></h2><pre class="answer">${written}</pre>`;
}

function hunkView(hunk: Hunk): string {
  const row = (kind: string, sign: string) => (line: string) =>
    `<span class="${kind}">${sign} ${escaped(line) || " "}</span>`;
  const lines = [...linesIn(hunk.before).map(row("out", "-")), ...linesIn(hunk.after).map(row("in", "+"))];
  const place = `line ${hunk.lines.start_line + 1}`;
  return `<h2>${place} <span class="soft">${STATES[hunk.state]}</span></h2><pre>${lines.join("")}</pre>`;
}

function linesIn(text: string): string[] {
  const lines = text.split(/\r\n|\r|\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

function share(part: number, whole: number): string {
  return whole === 0 ? "–" : `${Math.round((100 * part) / whole)} %`;
}

function seconds(value: number | undefined): string {
  return value === undefined ? "–" : `${value.toFixed(value < 10 ? 2 : 1)} s`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

function page(content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
  body { padding: 0 1.25rem 2rem; color: var(--vscode-foreground); font: 13px/1.5 var(--vscode-font-family); }
  h1 { font-size: 1.25rem; margin: 1.25rem 0 .25rem; }
  h2 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
  p { margin: 0 0 1rem; }
  .soft { color: var(--vscode-descriptionForeground); font-weight: normal; }
  dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(6.5rem, 1fr)); gap: .6rem; margin: 0; }
  dl div { border: 1px solid var(--vscode-widget-border, var(--vscode-editorGroup-border)); border-radius: 6px;
    padding: .4rem .7rem; }
  dt { color: var(--vscode-descriptionForeground); font-size: .85em; }
  dd { margin: 0; font-size: 1.35em; font-weight: 600; font-variant-numeric: tabular-nums; }
  pre { margin: 0; padding: .4rem 0; overflow-x: auto; border-radius: 6px; background: var(--vscode-editor-background);
    font: var(--vscode-editor-font-size)/1.5 var(--vscode-editor-font-family); }
  pre span { display: block; padding: 0 .7rem; white-space: pre; }
  .answer { padding: .5rem .7rem; white-space: pre-wrap; overflow-wrap: anywhere; }
  .answer mark { color: inherit; background: color-mix(in srgb, var(--vscode-charts-green) 28%, transparent); }
  .answer i { border-left: 2px solid var(--vscode-charts-blue); margin-right: 1px; }
  .in { background: var(--vscode-diffEditor-insertedLineBackground); }
  .out { background: var(--vscode-diffEditor-removedLineBackground); }
</style>
</head>
<body>${content}</body>
</html>`;
}
