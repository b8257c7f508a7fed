import assert from "node:assert/strict";
import { test } from "node:test";
import { codeIn } from "../../src/core/clipboard";
import { EditHistory, unifiedDiff } from "../../src/core/history";
import { isLineEdge, lineStarts } from "../../src/core/lines";

test("lines end in LF, CR or CRLF and in nothing else, and a byte-order mark is in none", () => {
  assert.deepEqual(lineStarts(""), [0]);
  assert.deepEqual(lineStarts("a"), [0, 1]);
  assert.deepEqual(lineStarts("a\r\nb\rc\nd"), [0, 3, 5, 7, 8]);
  assert.deepEqual(lineStarts("a\u2028b\n\n"), [0, 4, 5]);
  assert.deepEqual(lineStarts("\uFEFFa\n"), [1, 3]);
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((at) => isLineEdge("a\r\nb", at)),
    [true, false, false, true, true],
  );
});

test("code is taken out of its fence, and fences inside a longer fence belong to the code", () => {
  assert.equal(codeIn("Here:\n\n```python\na = 1\n\nb = 2\n```\nDone."), "a = 1\n\nb = 2");
  assert.equal(codeIn("\n\n  a = 1\r\n  b = 2\n\n"), "  a = 1\n  b = 2");
  assert.equal(codeIn("````md\n```js\nx\n```\n````\n", true), "```js\nx\n```");
  assert.equal(codeIn("# Title\n```js\nx\n```\nend", true), "# Title\n```js\nx\n```\nend");
  assert.equal(codeIn("```js\na\n```\nand\n```js\nb\n```"), "a\n\nb");
  assert.equal(codeIn("~~~\nopen"), "open");
  assert.equal(codeIn("``` ```\n"), "``` ```");
});

test("a change is told as a unified diff with a little around it", () => {
  assert.equal(unifiedDiff("a\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n"), "@@ -1,5 +1,5 @@\n a\n b\n-c\n+C\n d\n e\n");
  assert.equal(unifiedDiff("a\r\n", "a\n"), undefined);
});

test("letters typed next to each other are one change, and elsewhere begins another", () => {
  const history = new EditHistory("one\n2\n3\n4\n5\ntwo\n");
  history.changed("o\n2\n3\n4\n5\ntwo\n", 0);
  history.changed("ON\n2\n3\n4\n5\ntwo\n", 0);
  assert.equal(history.diffs.length, 1);
  assert.equal(history.replaces, true);
  history.changed("ON\n2\n3\n4\n5\ntwo\nthree\n", 6);
  assert.equal(history.diffs.length, 2);
  assert.match(history.diffs[0] ?? "", /-one\n\+ON/);
  assert.equal(history.replaces, false);
});
