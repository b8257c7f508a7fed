import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { around, CompletionCache, infillRequest, isWorthwhile, offered } from "../../src/core/completions";

const CHINESE = "# 注释：计算总和 😀\n变量 = 计算(数据, \nprint(变量)\n";

test("a document is split just at the cursor, whatever letters stand before it", () => {
  const offset = CHINESE.indexOf("\n") + 1 + 12;
  const there = around(CHINESE, offset - 1);
  assert.equal(there.before, "# 注释：计算总和 😀\n变量 = 计算(数据,");
  const request = infillRequest(around(CHINESE, offset), [], true);
  assert.equal(request.input_prefix + request.prompt, "# 注释：计算总和 😀\n变量 = 计算(数据, ");
  assert.equal(request.prompt, "变量 = 计算(数据, ");
  assert.equal(request.input_suffix, "\nprint(变量)\n");
});

test("the two parts are always the document, and no pair and no CRLF is torn apart", () => {
  const part = fc.constantFrom("a", "漢", "😀", "\r\n", "\t", "\n", "👩‍👧");
  fc.assert(
    fc.property(fc.array(part), fc.nat(80), (parts, offset) => {
      const text = parts.join("");
      const { before, after } = around(text, offset);
      assert.equal(before + after, text);
      assert.ok(before.isWellFormed() && after.isWellFormed());
      assert.ok(!(before.endsWith("\r") && after.startsWith("\n")));
    }),
  );
});

test("a CRLF document is shown with LF", () => {
  const { input_prefix, prompt, input_suffix } = infillRequest(around("a\r\n\tb\r\nc\r\n", 5), [], true);
  assert.deepEqual([input_prefix, prompt, input_suffix], ["a\n", "\tb", "\nc\n"]);
});

test("in a long document the beginning of what is shown stays put while a line is typed", () => {
  const lines = Array.from({ length: 2_000 }, (_, n) => `line ${n}\n`).join("");
  const starts = new Set<string>();
  for (const typed of ["", "a", "ab", "abc", "abcd"]) {
    const request = infillRequest({ before: lines + typed, after: lines }, [], true);
    starts.add(request.input_prefix);
    assert.equal(request.prompt, typed);
    assert.ok(request.input_prefix.length <= 6_000 && request.input_prefix.startsWith("line "));
    assert.ok(request.input_suffix.length <= 2_000 && request.input_suffix.endsWith("\n"));
  }
  assert.equal(starts.size, 1);
});

test("nothing is asked in the middle of code or in an empty document", () => {
  assert.equal(isWorthwhile({ before: "a = ", after: "b\n" }), false);
  assert.equal(isWorthwhile({ before: "", after: "\n" }), false);
  assert.equal(isWorthwhile({ before: "f(", after: ");\nb\n" }), true);
});

test("what stands behind the cursor anyway is not offered again, a closing bracket alone is", () => {
  assert.equal(offered("x = 1\r\n    return x", { before: "", after: "\r\n    return x\r\n" }), "x = 1");
  assert.equal(offered("g(x))", { before: "f(", after: ")\n" }), "g(x))");
  assert.equal(offered("  \n", { before: "", after: "" }), "");
});

test("typing what was offered needs no new answer, and typing something else does", () => {
  const cache = new CompletionCache();
  cache.put({ before: "ret", after: "\n" }, "urn a + b");
  assert.equal(cache.get({ before: "ret", after: "\n" }), "urn a + b");
  assert.equal(cache.get({ before: "return", after: "\n" }), " a + b");
  assert.equal(cache.get({ before: "return x", after: "\n" }), undefined);
  assert.equal(cache.get({ before: "return", after: "x\n" }), undefined);
  assert.equal(cache.get({ before: "return a + b", after: "\n" }), undefined, "all of it was typed: what comes next?");
  cache.put({ before: "none", after: "\n" }, "");
  assert.equal(cache.get({ before: "none", after: "\n" }), "", "nothing to offer is an answer, too");
});

test("the cache never offers what does not go on from what was typed", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "\n"), maxLength: 6 });
  fc.assert(
    fc.property(fc.array(fc.tuple(word, word, word), { maxLength: 8 }), word, word, (entries, before, after) => {
      const cache = new CompletionCache();
      for (const [then, behind, text] of entries) {
        cache.put({ before: then, after: behind }, text);
      }
      const found = cache.get({ before, after });
      const possible = entries
        .filter(
          ([then, behind, text]) => behind === after && before.startsWith(then) && (then + text).startsWith(before),
        )
        .map(([then, , text]) => (then + text).slice(before.length));
      assert.ok(found === undefined || possible.includes(found));
    }),
  );
});
