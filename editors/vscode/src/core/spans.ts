/** Places in a text that somebody goes on editing. Offsets count UTF-16 units, as editors do. */

import { isLineEdge } from "./lines";

/** From `start` up to but not including `end`. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A stretch of a text that was replaced. */
export interface Change extends Span {
  readonly text: string;
}

/**
 * Where a span is after a change, or nothing if the change touched it.
 *
 * What is inserted right at a span's edge stays outside: before a span that holds text, behind one that holds none.
 * Whether the span still covers whole lines only the text afterwards can tell: see {@link coversLines}.
 */
export function shifted(span: Span, change: Change): Span | undefined {
  const empty = span.start === span.end;
  const before = empty && change.start === change.end ? change.end < span.start : change.end <= span.start;
  if (before) {
    const by = change.text.length - (change.end - change.start);
    return { start: span.start + by, end: span.end + by };
  }
  return change.start >= span.end ? span : undefined;
}

/** Whether a span begins and ends at edges of lines. */
export function coversLines(text: string, span: Span): boolean {
  return isLineEdge(text, span.start) && isLineEdge(text, span.end);
}

/** Changes of disjoint stretches of one text, ascending, made all at once. */
export function withChanges(text: string, changes: readonly Change[]): string {
  const parts: string[] = [];
  let done = 0;
  for (const change of changes) {
    parts.push(text.slice(done, change.start), change.text);
    done = change.end;
  }
  parts.push(text.slice(done));
  return parts.join("");
}
