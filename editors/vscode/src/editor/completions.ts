/** Text offered at the cursor while the user types. */

import * as vscode from "vscode";
import { around, CompletionCache, infillRequest, isWorthwhile, offered } from "../core/completions";
import { Failure } from "../core/failure";
import { Latest } from "../core/latest";
import { isEdited } from "./documents";
import { signalOf } from "./signal";
import type { Service } from "./service";
import { settings } from "./settings";
import type { Surroundings } from "./surroundings";

const PAUSE = 100; // milliseconds without a key press; fast typists are at 60 to 90
const LONG = 2_000; // an answer that is given up after so long a wait makes us ask whether the service is still there

export class Completions implements vscode.InlineCompletionItemProvider, vscode.Disposable {
  private readonly cache = new CompletionCache();
  private readonly latest = new Latest();
  private readonly registration: vscode.Disposable;

  /** @param isBusy whether a document has an edit running, which is more important. */
  constructor(
    private readonly service: Service,
    private readonly surroundings: Surroundings,
    private readonly isBusy: (document: vscode.TextDocument) => boolean,
  ) {
    this.registration = vscode.languages.registerInlineCompletionItemProvider({ pattern: "**" }, this);
  }

  async provideInlineCompletionItems(
    document: vscode.TextDocument,
    position: vscode.Position,
    context: vscode.InlineCompletionContext,
    token: vscode.CancellationToken,
  ): Promise<vscode.InlineCompletionItem[]> {
    const asked = context.triggerKind === vscode.InlineCompletionTriggerKind.Invoke;
    const { completion, speculation } = settings(document);
    if (!asked && (!completion || !isEdited(document) || this.isBusy(document))) {
      return [];
    }
    const parts = around(document.getText(), document.offsetAt(position));
    if (!asked && !isWorthwhile(parts)) {
      this.latest.end();
      return [];
    }
    const known = this.cache.get(parts);
    if (known !== undefined) {
      this.latest.end();
      return this.item(known, position);
    }
    if (!this.service.willing || this.service.withoutCompletion !== undefined) {
      return [];
    }
    const answer = await this.latest.run(asked ? 0 : PAUSE, signalOf(token), async (signal) => {
      const began = Date.now();
      try {
        const request = infillRequest(parts, this.surroundings.around(document), speculation);
        return offered(await this.service.client.infill(request, signal), parts);
      } catch (error) {
        if (signal.aborted && Date.now() - began > LONG) {
          this.service.suspect();
        }
        if (!signal.aborted && error instanceof Failure) {
          if (error.kind === "unsupported") {
            this.service.lacksCompletion(error.message);
          } else {
            this.service.noticed(error);
          }
          return undefined;
        }
        throw error;
      }
    });
    if (answer === undefined) {
      return [];
    }
    this.cache.put(parts, answer);
    return this.item(answer, position);
  }

  dispose(): void {
    this.latest.end();
    this.registration.dispose();
  }

  private item(text: string, position: vscode.Position): vscode.InlineCompletionItem[] {
    return text === "" ? [] : [new vscode.InlineCompletionItem(text, new vscode.Range(position, position))];
  }
}
