/** The user's settings, read when they are needed. */

import * as vscode from "vscode";

export const SECTION = "lookupSpec";

export interface Settings {
  /** Without a slash at its end. */
  readonly url: string;
  readonly completion: boolean;
  readonly nextEdit: boolean;
  readonly speculation: boolean;
  readonly serviceCommand: readonly string[];
}

/** @param scope a document, for settings that may differ by language. */
export function settings(scope?: vscode.TextDocument): Settings {
  const all = vscode.workspace.getConfiguration(SECTION, scope);
  return {
    url: all
      .get<string>("url", "http://127.0.0.1:8012")
      .trim()
      .replace(/\/+(v1\/*)?$/, ""),
    completion: all.get<boolean>("completion", true),
    nextEdit: all.get<boolean>("nextEdit", true),
    speculation: all.get<boolean>("speculation", true),
    serviceCommand: all.get<string[]>("serviceCommand", ["lookup-spec", "serve"]),
  };
}
