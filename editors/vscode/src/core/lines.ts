/** Lines as the protocol counts them: LF, CR or CRLF ends one, nothing else does, and a byte-order mark is in none. */

const LINE = /[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+/g;

/**
 * Where each line of a text begins, in UTF-16 units, and, last, where the text ends.
 *
 * A text of n lines gives n + 1 offsets, so lines i up to but not including j are `text.slice(starts[i], starts[j])`.
 */
export function lineStarts(text: string): number[] {
  const first = text.startsWith("\uFEFF") ? 1 : 0;
  const starts = [first];
  LINE.lastIndex = first;
  while (LINE.exec(text) !== null) {
    starts.push(LINE.lastIndex);
  }
  return starts;
}

/** Whether a line begins at an offset of a text, or the text ends there. */
export function isLineEdge(text: string, offset: number): boolean {
  if (offset === 0 || offset === text.length) {
    return true;
  }
  const before = text[offset - 1];
  return before === "\n" || (before === "\r" && text[offset] !== "\n") || (before === "\uFEFF" && offset === 1);
}
