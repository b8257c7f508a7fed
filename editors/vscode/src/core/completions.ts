/** What stands around the cursor, what to ask for it, and answers that still hold after more was typed. */

import type { InfillRequest } from "./protocol";

const BEFORE = 6_000; // letters of the document before the cursor, at most
const BLOCK = 2_000; // by which the beginning moves: where it stays, the service has computed it already
const AFTER = 2_000;
const MAX_TOKENS = 96;
const MAX_MILLISECONDS = 1_500;

/** The text before and behind a cursor. */
export interface Around {
  readonly before: string;
  readonly after: string;
}

/** A text split at an offset in UTF-16 units, which is moved out of a pair or a CRLF if it lies within one. */
export function around(text: string, offset: number): Around {
  let at = Math.max(0, Math.min(offset, text.length));
  const [left, right] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
  const withinPair = left >= 0xd800 && left < 0xdc00 && right >= 0xdc00 && right < 0xe000;
  if (withinPair || (left === 13 && right === 10)) {
    at -= 1;
  }
  return { before: text.slice(0, at), after: text.slice(at) };
}

/** Whether a completion is worth asking for: not in the middle of a word or of code that goes on behind the cursor. */
export function isWorthwhile({ before, after }: Around): boolean {
  const rest = /^[^\r\n]*/.exec(after)?.[0] ?? "";
  return /^[\s)\]}>"'`,;:]*$/.test(rest) && /\S/.test(before + after);
}

/** The request for what stands at a cursor. Models know LF best, so CRLF is not shown to them. */
export function infillRequest(
  { before, after }: Around,
  extra: InfillRequest["input_extra"],
  speculation: boolean,
): InfillRequest {
  const behind = after.slice(0, lineEndBefore(after, AFTER));
  const shown = asLf(before.slice(blockStart(before)));
  const line = shown.lastIndexOf("\n") + 1;
  return {
    input_prefix: shown.slice(0, line),
    prompt: shown.slice(line),
    input_suffix: asLf(behind),
    input_extra: extra,
    n_predict: MAX_TOKENS,
    t_max_predict_ms: MAX_MILLISECONDS,
    speculation,
  };
}

/** An answer as it is offered: without what stands behind the cursor anyway, and without an end that is blank. */
export function offered(answer: string, { after }: Around): string {
  const behind = asLf(after.slice(0, 2 * answer.length + 2));
  let text = asLf(answer);
  for (let length = Math.min(text.length, behind.length); length >= 3; length -= 1) {
    const same = behind.slice(0, length);
    if (text.endsWith(same) && /[^\s)\]}]/.test(same)) {
      text = text.slice(0, text.length - length);
      break;
    }
  }
  return text.trimEnd();
}

/** Answers by what stood around the cursor; those that begin with what was typed since still hold. */
export class CompletionCache {
  private readonly entries = new Map<string, string>();

  constructor(private readonly size = 32) {}

  put({ before, after }: Around, text: string): void {
    const key = keyOf(before, after);
    this.entries.delete(key);
    this.entries.set(key, text);
    const oldest = this.entries.keys().next();
    if (this.entries.size > this.size && oldest.done !== true) {
      this.entries.delete(oldest.value);
    }
  }

  /** The rest of an answer; an empty one means that nothing is to be offered here; nothing, that it has to be asked. */
  get({ before, after }: Around): string | undefined {
    const behind = `${SPLIT}${after}`;
    for (const [key, text] of [...this.entries].reverse()) {
      const then = key.length - behind.length;
      if (then < 0 || then > before.length || !key.endsWith(behind) || !before.startsWith(key.slice(0, then))) {
        continue;
      }
      const typed = before.slice(then);
      if (text.startsWith(typed) && (text.length > typed.length || typed === "")) {
        return text.slice(typed.length);
      }
    }
    return undefined;
  }

  clear(): void {
    this.entries.clear();
  }
}

const SPLIT = "\u0000|\u0000";

function keyOf(before: string, after: string): string {
  return `${before}${SPLIT}${after}`;
}

function asLf(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll("\r", "\n");
}

/** Where to begin, so that little is left out and the place seldom moves; always at the start of a line. */
function blockStart(before: string): number {
  if (before.length <= BEFORE) {
    return 0;
  }
  const from = Math.ceil((before.length - BEFORE) / BLOCK) * BLOCK;
  const line = before.indexOf("\n", from - 1) + 1;
  return line > 0 ? line : from;
}

function lineEndBefore(text: string, limit: number): number {
  if (text.length <= limit) {
    return text.length;
  }
  const end = text.lastIndexOf("\n", limit - 1) + 1;
  return end > 0 ? end : limit;
}
