/** Code out of what was copied from a chat or a page. */

const OPENING = /^ {0,3}(`{3,}|~{3,})[^`]*$/;

/**
 * The code in a text: what its fences hold, or all of it if it has none. Blank lines around it do not belong to it.
 *
 * @param markdown the code is to be Markdown itself: then only a fence around everything is taken off.
 */
export function codeIn(text: string, markdown = false): string {
  const lines = trimmed(text.replaceAll("\r\n", "\n").split("\n"));
  const blocks = fenced(lines);
  const [first] = blocks;
  const whole = blocks.length === 1 && first?.start === 1 && first.end === lines.length - 1;
  if (blocks.length === 0 || (markdown && !whole)) {
    return lines.join("\n");
  }
  return blocks.map(({ start, end }) => trimmed(lines.slice(start, end)).join("\n")).join("\n\n");
}

interface Block {
  readonly start: number;
  readonly end: number;
}

/** The insides of a text's fences. One that is not closed reaches to the end. */
function fenced(lines: readonly string[]): Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const mark = OPENING.exec(lines[at] ?? "")?.[1];
    if (mark === undefined) {
      continue;
    }
    const start = at + 1;
    const closes = (line: string): boolean => {
      const told = line.trim();
      return told.length >= mark.length && told === (mark[0] ?? "").repeat(told.length);
    };
    const found = lines.findIndex((line, index) => index >= start && closes(line));
    at = found < 0 ? lines.length : found;
    blocks.push({ start, end: at });
  }
  return blocks;
}

function trimmed(lines: readonly string[]): string[] {
  const first = lines.findIndex((line) => line.trim() !== "");
  const last = lines.findLastIndex((line) => line.trim() !== "");
  return first < 0 ? [] : lines.slice(first, last + 1);
}
