import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Hunks, isOpen } from "../../src/core/hunks";
import { lineStarts } from "../../src/core/lines";
import type { Change } from "../../src/core/spans";
import { withChanges } from "../../src/core/spans";
import { FIXTURES } from "./fixtures";

const idsOf = (hunks: Hunks): Set<number> => new Set(hunks.open.map((hunk) => hunk.id));

test("every recording, applied at once, gives its final text byte for byte, and taken back gives its base", () => {
  for (const [name, { base, events, final }] of FIXTURES) {
    const hunks = new Hunks(base);
    for (const event of events) {
      if (event.type === "hunk" && event.state === "closed") {
        hunks.add(event.hunk_id, event.old, event.text);
      }
    }
    if (events.at(-1)?.type === "done") {
      assert.equal(hunks.result, final, name);
      hunks.turn(idsOf(hunks));
      assert.equal(hunks.text, final, name);
      hunks.turn(idsOf(hunks));
    }
    assert.equal(hunks.text, base, name);
  }
});

test("each hunk can be taken back alone, in any order", () => {
  const base = "a\nb\nc\nd\n";
  for (const order of [
    [0, 1, 2],
    [2, 0, 1],
    [1, 2, 0],
  ]) {
    const hunks = new Hunks(base);
    hunks.add(0, { start_line: 0, end_line: 0 }, "new\nlines\n");
    hunks.add(1, { start_line: 1, end_line: 3 }, "B\n");
    hunks.add(2, { start_line: 4, end_line: 4 }, "e\n");
    hunks.turn(new Set([0, 1, 2]));
    assert.equal(hunks.text, "new\nlines\na\nB\nd\ne\n");
    for (const id of order) {
      hunks.turn(new Set([id]));
    }
    assert.equal(hunks.text, base);
    assert.deepEqual(
      hunks.all.map((hunk) => hunk.state),
      ["rejected", "rejected", "rejected"],
    );
  }
});

test("a hunk that overlaps an earlier one or lies outside of the document is refused", () => {
  const hunks = new Hunks("a\nb\n");
  hunks.add(0, { start_line: 0, end_line: 1 }, "x\n");
  assert.throws(() => hunks.add(1, { start_line: 0, end_line: 1 }, "y\n"), RangeError);
  assert.throws(() => hunks.add(1, { start_line: 2, end_line: 3 }, "y\n"), RangeError);
});

test("a line typed above a hunk moves it; a letter typed in front of its first line drops it", () => {
  const above = new Hunks("a\nb\n");
  above.add(0, { start_line: 1, end_line: 2 }, "B\n");
  above.changed([{ start: 2, end: 2, text: "new\n" }], "a\nnew\nb\n");
  assert.equal(above.turned(idsOf(above)), "a\nnew\nB\n");
  const within = new Hunks("a\nb\n");
  within.add(0, { start_line: 1, end_line: 2 }, "B\n");
  within.changed([{ start: 2, end: 2, text: "x" }], "a\nxb\n");
  assert.equal(within.all[0]?.state, "dropped");
});

test("applied text that the user works on is theirs: it is kept and cannot be taken away", () => {
  const hunks = new Hunks("a\nb\n");
  hunks.add(0, { start_line: 0, end_line: 1 }, "A\n");
  hunks.turn(new Set([0]));
  hunks.changed([{ start: 1, end: 1, text: "!" }], "A!\nb\n");
  assert.equal(hunks.all[0]?.state, "kept");
  assert.equal(hunks.turned(new Set([0])), "A!\nb\n");
});

test("a hunk whose undoing only puts text back at its edge is over, and is not put back a second time", () => {
  const cases = [
    { after: "", put: { start: 2, end: 2, text: "b\nc\n" } },
    { after: "b\n", put: { start: 4, end: 4, text: "c\n" } },
    { after: "c\n", put: { start: 2, end: 2, text: "b\n" } },
  ];
  for (const { after, put } of cases) {
    const hunks = new Hunks("a\nb\nc\nd\n");
    hunks.add(0, { start_line: 1, end_line: 3 }, after);
    hunks.turn(new Set([0]));
    hunks.changed([put], withChanges(hunks.text, [put]), true);
    assert.equal(hunks.text, hunks.base);
    assert.equal(hunks.all[0]?.state, "rejected");
    assert.equal(hunks.turned(new Set([0])), hunks.base);
  }
});

interface Letter {
  readonly letter: string;
  readonly id: number | undefined; // where it stood in the base; none if the user typed it
}

/** A document that remembers where each of its letters comes from. */
class Remembering {
  letters: Letter[];

  constructor(base: string) {
    this.letters = base.split("").map((letter, id) => ({ letter, id }));
  }

  get text(): string {
    return this.letters.map(({ letter }) => letter).join("");
  }

  change({ start, end, text }: Change): void {
    this.letters.splice(start, end - start, ...text.split("").map((letter) => ({ letter, id: undefined })));
  }

  /** Where a stretch of the base is, if all its letters are there, nothing is between them, and lines begin around. */
  find(start: number, end: number): number | undefined {
    const at = this.letters.findIndex(({ id }) => id === start);
    if (at < 0 || !this.edge(at)) {
      return undefined;
    }
    for (let offset = 0; offset < end - start; offset += 1) {
      if (this.letters[at + offset]?.id !== start + offset) {
        return undefined;
      }
    }
    return this.edge(at + end - start) ? at : undefined;
  }

  private edge(at: number): boolean {
    return at === 0 || at === this.letters.length || this.letters[at - 1]?.letter === "\n";
  }
}

const text = fc
  .array(fc.constantFrom("a", "b", "\t", "é", "😀", "\n"), { maxLength: 30 })
  .map((parts) => parts.join(""));
const typed = fc.constantFrom("", "x", "\n", "x\n", "\nx", "xy\nz\n");

test("whatever is typed while hunks come, those left alone apply where a document that remembers has them", () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant("hunk" as const), skip: fc.nat(2), lines: fc.integer({ min: 1, max: 3 }) }),
      fc.record({ kind: fc.constant("type" as const), at: fc.nat(40), removed: fc.nat(4), text: typed }),
    ),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(text, steps, (base, actions) => {
      const hunks = new Hunks(base);
      const twin = new Remembering(base);
      const starts = lineStarts(base);
      const live = new Map<number, readonly [number, number]>();
      const settled = new Set<number>();
      let line = 0;
      let made = 0;
      for (const action of actions) {
        if (action.kind === "type") {
          const start = Math.min(action.at, twin.text.length);
          const change = { start, end: Math.min(start + action.removed, twin.text.length), text: action.text };
          if (change.start === change.end && change.text === "") {
            continue;
          }
          twin.change(change);
          hunks.changed([change], twin.text);
        } else {
          const first = line + action.skip;
          line = first + action.lines;
          const [from, to] = [starts[first], starts[line]];
          if (from === undefined || to === undefined) {
            break;
          }
          const hunk = hunks.add(made, { start_line: first, end_line: line }, `<${made}>\n`);
          assert.equal(hunk.before, base.slice(from, to));
          live.set(made, [from, to]);
          made += 1;
        }
        for (const hunk of hunks.all) {
          const [from, to] = live.get(hunk.id) ?? assert.fail();
          const at = twin.find(from, to);
          if (isOpen(hunk)) {
            assert.deepEqual(
              hunk.span,
              { start: at, end: (at ?? 0) + to - from },
              "an open hunk is where its letters are",
            );
          } else if (!settled.has(hunk.id)) {
            settled.add(hunk.id);
            assert.equal(at, undefined, "a hunk is dropped only if the user touched it");
          }
        }
      }
      const ids = idsOf(hunks);
      const changes = hunks.changesFor(ids);
      assert.ok(
        changes.every((change, n) => n === 0 || change.start >= (changes[n - 1]?.end ?? 0)),
        "disjoint, ascending",
      );
      const before = twin.text;
      assert.equal(hunks.text, before);
      const after = withChanges(before, changes);
      hunks.turn(ids);
      assert.equal(hunks.text, after);
      for (const hunk of hunks.open) {
        assert.equal(after.slice(hunk.span.start, hunk.span.end), hunk.after);
      }
      hunks.turn(ids);
      assert.equal(hunks.text, before, "taking all back restores what the user had");
    }),
    { numRuns: 2_000 },
  );
});

test("no letter of the user's is lost when hunks are taken back after more typing", () => {
  const edit = fc.record({ at: fc.nat(60), removed: fc.nat(3), text: typed });
  fc.assert(
    fc.property(fc.array(edit, { maxLength: 8 }), (edits) => {
      const base = "one\ntwo\nthree\nfour\nfive\n";
      const hunks = new Hunks(base);
      hunks.add(0, { start_line: 0, end_line: 1 }, "1\n");
      hunks.add(1, { start_line: 2, end_line: 2 }, "2.5\n");
      hunks.add(2, { start_line: 3, end_line: 5 }, "");
      hunks.turn(new Set([0, 1, 2]));
      let now = hunks.text;
      for (const { at, removed, text: added } of edits) {
        const start = Math.min(at, now.length);
        const change = { start, end: Math.min(start + removed, now.length), text: added.toUpperCase() };
        now = withChanges(now, [change]);
        hunks.changed([change], now);
      }
      const count = (value: string): number => value.match(/[XYZ]/g)?.length ?? 0;
      hunks.turn(idsOf(hunks));
      assert.equal(count(hunks.text), count(now));
    }),
    { numRuns: 1_000 },
  );
});
