/** Whether the service is there, found out without bothering anybody. */

import type { Failure } from "./failure";

/** Waits between attempts, in seconds; the last one repeats. Six attempts at most in the first minute. */
export const PAUSES = [3, 6, 12, 20, 25] as const;

/** Seconds until a service that could not complete is tried again: its model may be another by then. */
export const LAPSE = 60;

export type ConnectionState =
  | { readonly kind: "unknown" }
  | { readonly kind: "online"; readonly model: string }
  | { readonly kind: "away"; readonly failure: Failure };

/** Runs a function after some seconds; calling the result before then calls it off. */
export type After = (seconds: number, run: () => void) => () => void;

/**
 * Asks until the service answers, then relies on what requests tell.
 *
 * @param probe comes back with the model's name, or says what is wrong.
 * @param changed called with every new state, and when completions end or come back.
 */
export class Connection {
  private now: ConnectionState = { kind: "unknown" };
  private attempts = 0;
  private asking = false;
  private callOff: (() => void) | undefined;
  private lacking: string | undefined;
  private keepLacking: (() => void) | undefined;
  private readonly closing = new AbortController();

  constructor(
    private readonly probe: () => Promise<string | Failure>,
    private readonly changed: (state: ConnectionState) => void,
    private readonly after: After,
  ) {}

  get state(): ConnectionState {
    return this.now;
  }

  get online(): boolean {
    return this.now.kind === "online";
  }

  /** Why there are no completions, though the service is there. */
  get withoutCompletion(): string | undefined {
    return this.lacking;
  }

  /** Asks now, and from now on as if for the first time: something has changed. */
  async check(): Promise<void> {
    this.attempts = 0;
    this.lack(undefined);
    await this.ask();
  }

  /** A request failed in a way that says something about the service. */
  failed(failure: Failure): void {
    if (failure.kind === "busy") {
      return;
    }
    this.become({ kind: "away", failure });
    this.later(failure.retryAfter);
  }

  /** The model cannot complete. It is not asked to until a while has passed, or something has changed. */
  lacksCompletion(why: string): void {
    this.lack(why);
    this.keepLacking = this.after(LAPSE, () => {
      this.lack(undefined);
    });
  }

  /** Asks no more. */
  close(): void {
    this.closing.abort();
    this.callOff?.();
    this.keepLacking?.();
  }

  private async ask(): Promise<void> {
    if (this.asking || this.gone()) {
      return;
    }
    this.callOff?.();
    this.asking = true;
    const answer = await this.probe();
    this.asking = false;
    if (this.gone()) {
      return;
    }
    if (typeof answer === "string") {
      this.attempts = 0;
      this.become({ kind: "online", model: answer });
    } else {
      this.become({ kind: "away", failure: answer });
      this.later(answer.retryAfter);
    }
  }

  private gone(): boolean {
    return this.closing.signal.aborted;
  }

  private later(atLeast: number): void {
    this.callOff?.();
    const pause = PAUSES[Math.min(this.attempts, PAUSES.length - 1)] ?? 0;
    this.attempts += 1;
    this.callOff = this.after(Math.max(pause, atLeast), () => void this.ask());
  }

  private become(state: ConnectionState): void {
    const same =
      state.kind === this.now.kind &&
      (state.kind !== "away" || (this.now.kind === "away" && this.now.failure.message === state.failure.message)) &&
      (state.kind !== "online" || (this.now.kind === "online" && this.now.model === state.model));
    this.now = state;
    if (!same) {
      this.keepLacking?.();
      this.lacking = undefined;
      this.changed(state);
    }
  }

  private lack(why: string | undefined): void {
    this.keepLacking?.();
    if (this.lacking !== why) {
      this.lacking = why;
      this.changed(this.now);
    }
  }
}
