import type * as vscode from "vscode";

/** The editor's way to call something off, as the platform's. */
export function signalOf(token: vscode.CancellationToken): AbortSignal {
  const controller = new AbortController();
  if (token.isCancellationRequested) {
    controller.abort();
  } else {
    token.onCancellationRequested(() => {
      controller.abort();
    });
  }
  return controller.signal;
}
