/** One edit, from its request to hunks that may be applied. No editor is involved. */

import type { Client } from "./client";
import { Failure } from "./failure";
import { Hunks } from "./hunks";
import type { DoneEvent, EditRequest, ProgressEvent, TraceEvent } from "./protocol";
import { sha256 } from "./sha256";

/** A hunk that is being written: shown, never applied. */
export interface Growing {
  readonly line: number;
  readonly text: string;
}

/**
 * How an edit ended.
 *
 * - `complete`: all hunks are there.
 * - `unchanged`: the document stays as it is.
 * - `partial`: the hunks that are there are whole, but more would have come; `message` says why they did not.
 * - `failed`: no hunk may be applied; `message` says why.
 * - `cancelled`: by the user, by a newer edit, or because the document is gone.
 */
export interface Ending {
  readonly kind: "complete" | "unchanged" | "partial" | "failed" | "cancelled";
  readonly message: string;
  /** What was wrong between the editor and the service, if that was it. */
  readonly failure?: Failure;
}

/** What was spent so far. */
export interface Spent {
  readonly tokens: number;
  readonly accepted: number;
  readonly rejected: number;
  readonly seconds: number;
  /** From the request to the first token and to the first hunk. */
  readonly firstToken: number | undefined;
  readonly firstHunk: number | undefined;
}

export class Edit {
  readonly hunks: Hunks;
  model = "";
  /** The tokens of the answer so far, by forward pass. */
  readonly passes: TraceEvent["tokens"][] = [];
  growing: Growing | undefined;
  /** How far the document is settled, and how long it is; in lines as sent. */
  line: number;
  readonly firstLine: number;
  lines: number | undefined;
  spent: Spent = { tokens: 0, accepted: 0, rejected: 0, seconds: 0, firstToken: undefined, firstHunk: undefined };
  ending: Ending | undefined;
  private readonly controller = new AbortController();

  constructor(
    readonly request: EditRequest,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.hunks = new Hunks(request.document.text);
    this.firstLine = request.range?.start.line ?? 0;
    this.line = this.firstLine;
  }

  /** Ends it. Closing the connection makes the service stop within a step. */
  cancel(): void {
    this.controller.abort();
  }

  /**
   * Runs it to its end.
   *
   * @param changed called after every event.
   */
  async run(client: Client, changed: () => void): Promise<Ending> {
    const started = this.now();
    try {
      for await (const event of client.edit(this.request, this.controller.signal)) {
        const seconds = (this.now() - started) / 1000;
        switch (event.type) {
          case "start":
            await this.checkBase(event.document.sha256);
            this.model = event.model;
            this.line = event.range.start_line;
            break;
          case "trace":
            this.passes.push(event.tokens);
            break;
          case "progress":
            this.take(event, seconds);
            break;
          case "hunk":
            this.spent = { ...this.spent, seconds, firstHunk: this.spent.firstHunk ?? seconds };
            if (event.state === "closed") {
              this.growing = undefined;
              this.hunks.add(event.hunk_id, event.old, event.text);
            } else {
              const text = event.state === "open" ? "" : (this.growing?.text ?? "");
              this.growing = { line: event.old.start_line, text: text + event.text };
            }
            break;
          case "done":
            this.ending = await this.ended(event);
            break;
          case "error":
            this.ending = { kind: event.safe_to_keep ? "partial" : "failed", message: event.error.message };
            break;
        }
        changed();
      }
    } catch (error) {
      this.ending = this.broken(error);
    }
    this.growing = undefined;
    this.ending ??= { kind: "cancelled", message: "" };
    return this.ending;
  }

  private take(event: ProgressEvent, seconds: number): void {
    const { tokens, accepted, rejected } = event;
    this.line = event.old_line;
    this.lines = event.old_lines;
    this.spent = { ...this.spent, tokens, accepted, rejected, seconds, firstToken: this.spent.firstToken ?? seconds };
  }

  private async ended(event: DoneEvent): Promise<Ending> {
    if ((await sha256(this.hunks.result)) !== event.result_sha256) {
      return { kind: "failed", message: "The changes do not add up to what the service meant, so none was made." };
    }
    switch (event.finish_reason) {
      case "stop":
        return { kind: "complete", message: "" };
      case "no_change":
        return { kind: "unchanged", message: "The model leaves this as it is." };
      case "length":
        return { kind: "partial", message: "The answer became too long and was cut off." };
      case "cancelled":
      case "stale":
        return { kind: "cancelled", message: "" };
    }
  }

  private broken(error: unknown): Ending {
    if (this.controller.signal.aborted) {
      return { kind: "cancelled", message: "" };
    }
    if (error instanceof Failure) {
      const kind = error.kind === "cut" || error.kind === "offline" ? "partial" : "failed";
      return { kind, message: error.message, failure: error };
    }
    if (error instanceof RangeError) {
      return { kind: "failed", message: error.message };
    }
    throw error;
  }

  private async checkBase(sha: string): Promise<void> {
    if ((await sha256(this.request.document.text)) !== sha) {
      throw new Failure("odd", "The service read another text than the one sent; something between alters it.");
    }
  }
}
