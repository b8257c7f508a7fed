/** Has documents computed before they are edited, so that edits of them begin at once. */

import * as vscode from "vscode";
import { Failure } from "../core/failure";
import { Latest } from "../core/latest";
import { bodyOf, isEdited } from "./documents";
import type { Service } from "./service";

const PAUSE = 500; // milliseconds that a document is looked at

export class Warming implements vscode.Disposable {
  private readonly latest = new Latest();
  private readonly disposables: vscode.Disposable[];
  private warmed: { readonly document: vscode.TextDocument; readonly version: number } | undefined;

  constructor(
    private readonly service: Service,
    private readonly isBusy: (document: vscode.TextDocument) => boolean,
  ) {
    const active = (): void => {
      const document = vscode.window.activeTextEditor?.document;
      if (document !== undefined) {
        void this.warm(document, PAUSE);
      }
    };
    this.disposables = [vscode.window.onDidChangeActiveTextEditor(active), service.onDidChange(active)];
  }

  /** @param pause milliseconds to wait for something more important. */
  async warm(document: vscode.TextDocument, pause = 0): Promise<void> {
    const { version } = document;
    const already = this.warmed?.document === document && this.warmed.version === version; // names are used again
    if (!this.service.warms || !isEdited(document) || this.isBusy(document) || already) {
      return;
    }
    await this.latest.run(pause, new AbortController().signal, async (signal) => {
      this.warmed = { document, version };
      try {
        await this.service.client.warm({ document: bodyOf(document) }, signal);
      } catch (error) {
        this.warmed = undefined;
        if (!signal.aborted && error instanceof Failure) {
          this.service.didNotWarm(error);
          return;
        }
        throw error;
      }
    });
  }

  /** Makes way for an edit. */
  end(): void {
    this.latest.end();
  }

  dispose(): void {
    this.latest.end();
    vscode.Disposable.from(...this.disposables).dispose();
  }
}
