/** Where new lines show while the document has no place for them yet: in a column beside lines that it has. */

/** A line that shows behind the end of another. */
export interface Beside {
  readonly line: number;
  /** Columns between the end of the line and it. */
  readonly gap: number;
  readonly text: string;
}

const GAP = 3; // columns, at least
const MOST = 100; // letters that are shown of a line
const FARTHEST = 90; // columns: behind longer lines the column is left
const TAB = 4;

/**
 * Puts new lines beside lines of the document, the first beside `first`, all in one column and of one width.
 *
 * @param texts at least one.
 * @param lineAt the document's lines.
 * @param room how many lines there are to show something beside, at least one.
 * @param end whether the end of the new lines matters most, if they do not all fit.
 */
export function beside(
  texts: readonly string[],
  lineAt: (line: number) => string,
  first: number,
  room: number,
  end = false,
): Beside[] {
  const fitting = end ? texts.slice(-room) : texts.slice(0, room);
  const left = texts.length - fitting.length;
  const indent = Math.min(...fitting.filter((text) => text.trim() !== "").map((text) => leading(flat(text))));
  const rest = left === 0 ? "" : ` (+${left} ${left === 1 ? "line" : "lines"})`;
  const shown = fitting.map((text, n) => {
    const line = short(flat(text).slice(Number.isFinite(indent) ? indent : 0));
    return n === fitting.length - 1 ? line + rest : line;
  });
  const widest = Math.max(...shown.map(widthOf));
  const widths = shown.map((_, n) => widthOf(flat(lineAt(first + n))));
  const column = Math.min(Math.max(...widths), FARTHEST) + GAP;
  return shown.map((text, n) => ({
    line: first + n,
    gap: Math.max(column - (widths[n] ?? 0), GAP),
    text: text + " ".repeat(widest - widthOf(text)),
  }));
}

function flat(text: string): string {
  return text.trimEnd().replaceAll("\t", " ".repeat(TAB));
}

function leading(text: string): number {
  return text.length - text.trimStart().length;
}

function short(text: string): string {
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text;
}

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]|\p{Emoji_Presentation}/u;

/** Columns that a text takes, of which ideographs and the like take two. */
function widthOf(text: string): number {
  return Array.from(text).reduce((width, letter) => width + (WIDE.test(letter) ? 2 : 1), 0);
}
