/** What was changed lately, as unified diffs: from these the next change is guessed. */

const CONTEXT = 2; // unchanged lines around a change
const KEPT = 6;
const MAX_LINES = 40; // a longer change tells little about the next one

/**
 * The change between two texts as one hunk of a unified diff; nothing if there is none, or it is too long.
 */
export function unifiedDiff(before: string, after: string): string | undefined {
  const [old, now] = [before.split(/\r\n|\r|\n/), after.split(/\r\n|\r|\n/)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) {
    head += 1;
  }
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) {
    tail += 1;
  }
  const [removed, added] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)];
  if (removed.length + added.length === 0 || removed.length + added.length > MAX_LINES) {
    return undefined;
  }
  const lead = now.slice(Math.max(0, head - CONTEXT), head);
  const trail = now.slice(now.length - tail, Math.min(now.length, now.length - tail + CONTEXT));
  const start = head - lead.length + 1;
  const size = lead.length + trail.length;
  return [
    `@@ -${start},${size + removed.length} +${start},${size + added.length} @@`,
    ...lead.map((line) => ` ${line}`),
    ...removed.map((line) => `-${line}`),
    ...added.map((line) => `+${line}`),
    ...trail.map((line) => ` ${line}`),
    "",
  ].join("\n");
}

/** The latest changes to one document. Keystrokes next to each other are one change. */
export class EditHistory {
  private done: string[] = [];
  private since: string;
  private now: string;
  private line: number | undefined;

  constructor(text: string) {
    this.since = text;
    this.now = text;
  }

  /**
   * The document changed.
   *
   * @param line where, counted from 0; a change far from the last one is another one.
   */
  changed(text: string, line: number): void {
    if (this.line !== undefined && Math.abs(line - this.line) > CONTEXT) {
      this.close();
    }
    this.now = text;
    this.line = line;
  }

  /** The latest changes, oldest first. */
  get diffs(): readonly string[] {
    const last = unifiedDiff(this.since, this.now);
    return last === undefined ? this.done : [...this.done, last].slice(-KEPT);
  }

  /** Whether the latest change took something away or replaced it: such changes tend to go on elsewhere. */
  get replaces(): boolean {
    return /^-.*\S/m.test(unifiedDiff(this.since, this.now)?.replace(/^@@.*$/m, "") ?? "");
  }

  private close(): void {
    this.done = [...this.diffs].slice(-KEPT);
    this.since = this.now;
  }
}
