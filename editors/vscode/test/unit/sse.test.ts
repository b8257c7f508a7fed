import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { eventFrom } from "../../src/core/protocol";
import { SseParser } from "../../src/core/sse";
import { FIXTURES, streamOf } from "./fixtures";

function parsed(pieces: Iterable<Uint8Array>): string[] {
  const parser = new SseParser();
  return Array.from(pieces).flatMap((piece) => parser.push(piece));
}

function* bytewise(text: string): Generator<Uint8Array> {
  for (const byte of new TextEncoder().encode(text)) {
    yield Uint8Array.of(byte);
  }
}

/** The same, written down plainly: all at once, by the grammar of the standard. */
function slowly(stream: string): string[] {
  const lines = stream
    .replace(/^\uFEFF/, "")
    .split(/\r\n|\r|\n/)
    .slice(0, -1);
  const events: string[] = [];
  let data: string[] | undefined;
  for (const line of lines) {
    if (line === "") {
      if (data !== undefined) {
        events.push(data.join("\n"));
      }
      data = undefined;
    } else if (/^data(:|$)/.test(line)) {
      data = [...(data ?? []), line.replace(/^data:? ?/, "")];
    }
  }
  return events;
}

test("every recording comes out of a stream that arrives byte by byte", () => {
  for (const [, fixture] of FIXTURES) {
    const events = parsed(bytewise(streamOf(fixture.events)));
    assert.deepEqual(
      events.map((data) => JSON.parse(data) as unknown),
      fixture.events,
    );
  }
});

test("comments, other fields, all kinds of line ends and several data lines are read as the standard says", () => {
  const stream =
    ': hb\n\ndata: {"a":1}\r\n\r\nevent: x\rid: 3\rdata: one\rdata:two\rdata\r\r:\n\ndata:  y\n\ndata: unfinished\n';
  const expected = ['{"a":1}', "one\ntwo\n", " y"];
  assert.deepEqual(parsed(bytewise(stream)), expected);
  assert.deepEqual(parsed([new TextEncoder().encode(stream)]), expected);
});

test("the result does not depend on how a stream is cut, and equals a plain reading of it", () => {
  const part = fc.constantFrom(
    "data: ",
    "data:",
    "data",
    ":",
    " ",
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "x",
    "é",
    "😀",
    "\u2028",
    "id: 1",
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 40 }), fc.array(fc.nat(9), { maxLength: 60 }), (parts, sizes) => {
      const stream = parts.join("").replace(/data: ?\uFEFF/, "");
      const bytes = new TextEncoder().encode(stream);
      const pieces: Uint8Array[] = [];
      let at = 0;
      for (const size of sizes) {
        pieces.push(bytes.subarray(at, at + size));
        at += size;
      }
      pieces.push(bytes.subarray(at));
      // A CR at the very end may be half of a CRLF, but it ends its line all the same.
      assert.deepEqual(parsed(pieces), slowly(stream));
    }),
    { numRuns: 500 },
  );
});

test("events of unknown types are passed over, and known ones that lack a field are refused", () => {
  assert.equal(eventFrom('{"type":"weather","sun":true}'), undefined);
  assert.throws(() => eventFrom('{"type":"hunk","hunk_id":0,"state":"closed","text":""}'), SyntaxError);
  assert.throws(() => eventFrom('{"type":"constructor","text":3}') ?? assert.fail(), assert.AssertionError);
  assert.throws(() => eventFrom("[]"), SyntaxError);
  assert.throws(() => eventFrom("<html>"), SyntaxError);
});
