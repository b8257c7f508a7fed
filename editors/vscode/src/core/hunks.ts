/** The hunks of one edit, followed through whatever happens to the document meanwhile. */

import { lineStarts } from "./lines";
import type { LineRange } from "./protocol";
import { coversLines, shifted, withChanges } from "./spans";
import type { Change, Span } from "./spans";

/**
 * - `proposed`: the document has the old text.
 * - `applied`: it has the new text, and the old one can be put back.
 * - `kept`, `rejected`: decided by the user.
 * - `dropped`: the user changed the old text before it could be replaced.
 */
export type HunkState = "proposed" | "applied" | "kept" | "rejected" | "dropped";

export interface Hunk {
  readonly id: number;
  /** The lines that it replaces in the document as it was sent. */
  readonly lines: LineRange;
  readonly before: string;
  readonly after: string;
  readonly state: HunkState;
  /** Where it is in the document; of no use once it is settled. */
  readonly span: Span;
}

/** Whether a hunk still waits for a decision. */
export function isOpen(hunk: Hunk): boolean {
  return hunk.state === "proposed" || hunk.state === "applied";
}

export class Hunks {
  private readonly starts: readonly number[];
  private readonly log: Change[] = [];
  private list: readonly Hunk[] = [];
  private current: string;

  /** @param base the document as it was sent. */
  constructor(readonly base: string) {
    this.starts = lineStarts(base);
    this.current = base;
  }

  get all(): readonly Hunk[] {
    return this.list;
  }

  get open(): readonly Hunk[] {
    return this.list.filter(isOpen);
  }

  /** The document as it is now. */
  get text(): string {
    return this.current;
  }

  /** The document as it was sent, with all hunks, whatever became of them. */
  get result(): string {
    return withChanges(
      this.base,
      this.list.map((hunk) => ({ ...this.sent(hunk.lines), text: hunk.after })),
    );
  }

  /**
   * Takes a closed hunk. If the user has already changed what it replaces, it is dropped.
   *
   * @throws RangeError it does not lie behind the last one, or not within the document.
   */
  add(id: number, lines: LineRange, after: string): Hunk {
    const last = this.list.at(-1)?.lines.end_line ?? 0;
    if (lines.start_line < last || lines.end_line < lines.start_line || lines.end_line >= this.starts.length) {
      throw new RangeError(
        `Hunk ${id} of lines ${lines.start_line} to ${lines.end_line} has no place in the document.`,
      );
    }
    const sent = this.sent(lines);
    const span = this.followed(sent);
    const hunk: Hunk = {
      id,
      lines,
      before: this.base.slice(sent.start, sent.end),
      after,
      state: span === undefined ? "dropped" : "proposed",
      span: span ?? sent,
    };
    this.list = [...this.list, hunk];
    return hunk;
  }

  /** Where a line of the document as it was sent begins now; nothing if the user changed what stood there. */
  place(line: number): number | undefined {
    const offset = this.starts[Math.min(line, this.starts.length - 1)] ?? 0;
    return this.followed({ start: offset, end: offset })?.start;
  }

  /**
   * The user, or something else than this edit, changed the document.
   *
   * @param changes one after the other, each in the text that the ones before it left.
   * @param text the document afterwards.
   * @param undone it was undone: then applied hunks that are gone were taken back.
   */
  changed(changes: readonly Change[], text: string, undone = false): void {
    this.log.push(...changes);
    this.current = text;
    this.list = this.list.map((hunk) => (isOpen(hunk) ? this.after(hunk, changes, undone) : hunk));
  }

  /** The document once these hunks are applied, if they are proposed, or taken back, if they are applied. */
  turned(ids: ReadonlySet<number>): string {
    return withChanges(this.current, this.changesFor(ids));
  }

  /** What has to change in the document for that: ascending, disjoint, all at once. */
  changesFor(ids: ReadonlySet<number>): Change[] {
    return this.list.filter((hunk) => ids.has(hunk.id) && isOpen(hunk)).map(changeOf);
  }

  /** The document was changed so. */
  turn(ids: ReadonlySet<number>): void {
    this.current = this.turned(ids);
    const made: Change[] = [];
    let by = 0;
    this.list = this.list.map((hunk) => {
      const moved = { start: hunk.span.start + by, end: hunk.span.end + by };
      if (!isOpen(hunk) || !ids.has(hunk.id)) {
        return isOpen(hunk) ? { ...hunk, span: moved } : hunk;
      }
      const change = changeOf(hunk);
      made.push({ ...moved, text: change.text });
      by += change.text.length - (hunk.span.end - hunk.span.start);
      const span = { start: moved.start, end: moved.start + change.text.length };
      return { ...hunk, span, state: hunk.state === "proposed" ? "applied" : "rejected" };
    });
    this.log.push(...made);
  }

  /** The user decided, and the document stays as it is. */
  settle(ids: ReadonlySet<number>): void {
    this.list = this.list.map((hunk) =>
      ids.has(hunk.id) && isOpen(hunk) ? { ...hunk, state: hunk.state === "applied" ? "kept" : "rejected" } : hunk,
    );
  }

  private after(hunk: Hunk, changes: readonly Change[], undone: boolean): Hunk {
    const span = through(hunk, changes);
    if (span !== undefined && coversLines(this.current, span)) {
      return { ...hunk, span };
    }
    // What the user has worked on is theirs: it is neither replaced nor taken away any more.
    return { ...hunk, state: hunk.state === "proposed" ? "dropped" : undone ? "rejected" : "kept" };
  }

  private followed(sent: Span): Span | undefined {
    const span = through({ span: sent }, this.log);
    return span !== undefined && coversLines(this.current, span) ? span : undefined;
  }

  private sent(lines: LineRange): Span {
    const [start, end] = [this.starts[lines.start_line], this.starts[lines.end_line]];
    if (start === undefined || end === undefined) {
      throw new RangeError(`The document has no lines ${lines.start_line} to ${lines.end_line}.`);
    }
    return { start, end };
  }
}

function changeOf(hunk: Hunk): Change {
  return { ...hunk.span, text: hunk.state === "proposed" ? hunk.after : hunk.before };
}

/** Where a stretch of text is after changes; nothing if one touched it, or put back what a hunk took away. */
function through(from: Pick<Hunk, "span"> & Partial<Hunk>, changes: readonly Change[]): Span | undefined {
  let place: Span | undefined = from.span;
  for (const change of changes) {
    if (place === undefined || (from.state === "applied" && putsBack(change, place, from))) {
      return undefined;
    }
    place = shifted(place, change);
  }
  return place;
}

/** Whether text inserted at a hunk's edge makes it what it was: undoing a removal touches nothing else. */
function putsBack({ start, end, text }: Change, place: Span, { before, after = "" }: Partial<Hunk>): boolean {
  const inFront = start === place.start && text + after === before;
  const behind = start === place.end && after + text === before;
  return start === end && (inFront || behind);
}
