// Texts as lines, the way the edit protocol counts them.

const LINE = /[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+/g;
const MARK = "\ufeff";

/** The lines of a text with their ends; a byte-order mark is not part of the first. */
export function linesOf(text) {
  return text.replace(MARK, (mark, place) => (place ? mark : "")).match(LINE) ?? [];
}

/** A line without its end. */
export function bare(line) {
  return line.replace(/[\r\n]+$/, "");
}

/** The text after all hunks, which ascend and do not overlap. */
export function applied(text, hunks) {
  const lines = linesOf(text);
  for (const { old, text: inserted } of hunks.toReversed()) {
    lines.splice(old.start_line, old.end_line - old.start_line, inserted);
  }
  return (text.startsWith(MARK) ? MARK : "") + lines.join("");
}

/** SHA-256 of a text in UTF-8, in hexadecimal; null where the browser keeps it from pages that came unencrypted. */
export async function sha256(text) {
  if (!globalThis.crypto?.subtle) return null;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
