/** Documents as they were before their edit, to compare with. */

import * as vscode from "vscode";
import type { Sessions } from "./sessions";

const SCHEME = "lookup-spec-original";

export class Originals implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly registration: vscode.Disposable;

  constructor(private readonly sessions: Sessions) {
    this.registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  /** Shows what a document was beside what it is. */
  async compare(document: vscode.TextDocument): Promise<void> {
    const name = document.uri.path.split("/").at(-1) ?? "";
    const query = encodeURIComponent(document.uri.toString());
    // The time makes each comparison a document of its own: the editor keeps what it has once read.
    const original = vscode.Uri.from({ scheme: SCHEME, path: document.uri.path, query: `${query}&${Date.now()}` });
    await vscode.commands.executeCommand("vscode.diff", original, document.uri, `${name} (before the edit ↔ now)`);
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    const { last } = this.sessions;
    const [of = ""] = uri.query.split("&");
    return last?.document.uri.toString() === decodeURIComponent(of) ? last.edit.hunks.base : "";
  }

  dispose(): void {
    this.registration.dispose();
  }
}
