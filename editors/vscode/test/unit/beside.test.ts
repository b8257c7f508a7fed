import assert from "node:assert/strict";
import { test } from "node:test";
import { beside } from "../../src/core/beside";

const lineAt = (line: number): string => ["short", "a longer line", "\tx", "", "变量"][line] ?? "";

test("new lines stand in one column, as wide as the widest, without the indentation that all have", () => {
  const shown = beside(["    if a:", "        return", "    b"], lineAt, 0, 9);
  assert.deepEqual(
    shown.map(({ line, text }) => [line, text]),
    [
      [0, "if a:     "],
      [1, "    return"],
      [2, "b         "],
    ],
  );
  const ends = ["short".length, "a longer line".length, 4 + "x".length];
  assert.deepEqual(
    shown.map(({ gap }, n) => gap + (ends[n] ?? 0)),
    [16, 16, 16],
  );
});

test("what does not fit is counted; of what is being written the end shows", () => {
  const texts = ["a", "b", "c"];
  const words = (end: boolean, room: number): string[] =>
    beside(texts, lineAt, 1, room, end).map(({ text }) => text.trim());
  assert.deepEqual(words(false, 2), ["a", "b (+1 line)"]);
  assert.deepEqual(words(false, 1), ["a (+2 lines)"]);
  assert.deepEqual(words(true, 2), ["b", "c (+1 line)"]);
  assert.deepEqual(words(false, 3), texts);
});

test("wide letters take two columns, and a line that is too long has its neighbour behind it", () => {
  const [one, two] = beside(["a", "b"], (line) => ["变量", "abcd"][line] ?? "", 0, 9);
  assert.equal(one?.gap, two?.gap);
  const [far, near] = beside(["a", "b"], (line) => ["x".repeat(200), "y"][line] ?? "", 0, 9);
  assert.deepEqual([far?.gap, near?.gap], [3, 92]);
});

test("empty lines among new ones are kept, and nothing else but empty lines is fine", () => {
  assert.deepEqual(
    beside(["  a", "", "  b"], lineAt, 0, 9).map(({ text }) => text),
    ["a", " ", "b"],
  );
  assert.deepEqual(
    beside([""], lineAt, 0, 9).map(({ text }) => text),
    [""],
  );
});
