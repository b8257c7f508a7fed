// One edit as it comes in: events in, numbers and text out. It draws nothing.

import { applied, linesOf } from "./lines.js";

/**
 * @typedef {{text: string, source: string}} Token
 * @typedef {{step: number, tokens: Token[], drafted: number, accepted: number, seconds: number}} Pass
 */

export class Edit {
  /** @type {Pass[]} */
  passes = [];
  hunks = [];
  answer = "";
  start = null;
  progress = null;
  done = null;
  /** What went wrong, in words. */
  problem = "";

  /** @param {string} base the document before */
  constructor(base) {
    this.base = base;
    this.lines = linesOf(base);
    this.tokens = 0;
    this.lookedUp = 0;
    this.drafted = 0;
    this.accepted = 0;
  }

  /** Takes in one event of the protocol. */
  take(event) {
    switch (event.type) {
      case "start":
        this.start = event;
        break;
      case "progress":
        this.progress = event;
        break;
      case "trace":
        this.#pass(event);
        break;
      case "hunk":
        if (event.state === "closed") this.hunks.push(event);
        break;
      case "done":
        this.done = event;
        break;
      case "error":
        this.problem = event.error.message;
        if (!event.safe_to_keep) this.hunks = [];
        break;
    }
  }

  #pass(pass) {
    this.passes.push(pass);
    this.answer += pass.tokens.map((token) => token.text).join("");
    this.tokens += pass.tokens.length;
    this.lookedUp += pass.tokens.filter((token) => token.source).length;
    this.drafted += pass.drafted;
    this.accepted += pass.accepted;
  }

  /** The document with what is closed so far. */
  get text() {
    return applied(this.base, this.hunks);
  }

  /** Seconds from the first pass to the last. */
  get seconds() {
    return this.done?.stats.decode_seconds ?? this.passes.at(-1)?.seconds ?? 0;
  }

  /** Tokens a second, those of the first pass left out: it read the prompt. 0 as long as there is nothing to go by. */
  get rate() {
    const tokens = this.tokens - (this.passes[0]?.tokens.length ?? 0);
    return this.seconds > 0 ? tokens / this.seconds : 0;
  }

  get perPass() {
    return this.passes.length ? this.tokens / this.passes.length : 0;
  }

  /** Whether the whole edit came. */
  get complete() {
    return this.done !== null && !this.done.truncated;
  }
}
