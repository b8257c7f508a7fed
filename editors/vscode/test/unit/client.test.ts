import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../../src/core/client";
import { Edit } from "../../src/core/edit";
import { Failure } from "../../src/core/failure";
import { sha256 } from "../../src/core/sha256";
import { FIXTURES, streamOf } from "./fixtures";
import type { Fixture } from "./fixtures";
import { serving } from "./server";

const PATIENT = { health: 60_000, infill: 60_000, silence: 60_000 };
const IMPATIENT = { health: 200, infill: 200, silence: 200 };
const NEVER = new AbortController().signal;

function fixture(name: string): Fixture {
  return FIXTURES.find(([other]) => other === name)?.[1] ?? assert.fail(name);
}

function client(url: string, patience = PATIENT): Client {
  return new Client({ url, key: "secret" }, patience);
}

test("every recording, streamed over HTTP, ends as recorded and with its final text", async () => {
  for (const [name, { request, events, base, final }] of FIXTURES) {
    await serving(
      (_, response) => {
        response
          .writeHead(200, { "content-type": "text/event-stream; charset=utf-8" })
          .end(`: hb\n\n${streamOf(events)}`);
      },
      async (url) => {
        const edit = new Edit(request);
        const { kind } = await edit.run(client(url), () => undefined);
        const last = events.at(-1);
        const reason = last?.type === "done" ? last.finish_reason : "error";
        const kinds = {
          stop: "complete",
          no_change: "unchanged",
          length: "partial",
          cancelled: "cancelled",
          stale: "cancelled",
          error: "failed",
        };
        assert.equal(kind, kinds[reason], name);
        edit.hunks.turn(new Set(kind === "failed" ? [] : edit.hunks.open.map(({ id }) => id)));
        assert.equal(edit.hunks.text, kind === "failed" ? base : final, name);
      },
    );
  }
});

test("the tokens of an edit are told by forward pass, with what proposed them", async () => {
  const { request, events } = fixture("trace");
  await serving(
    (_, response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(streamOf(events)),
    async (url) => {
      const edit = new Edit(request);
      await edit.run(client(url), () => undefined);
      const traced = events.filter((event) => event.type === "trace");
      assert.ok(traced.length > 0);
      assert.deepEqual(
        edit.passes,
        traced.map(({ tokens }) => tokens),
      );
    },
  );
});

test("a stream that ends without its end is incomplete, wherever it was cut", async () => {
  const { request, events } = fixture("several-hunks");
  const stream = streamOf(events);
  for (let length = 0; length < stream.length - 2; length += 97) {
    await serving(
      (_, response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(stream.slice(0, length)),
      async (url) => {
        const { kind } = await new Edit(request).run(client(url), () => undefined);
        assert.equal(kind, "partial", `${length}`);
      },
    );
  }
});

test("a connection that breaks, or stays silent, makes an edit incomplete", async () => {
  const { request, events } = fixture("several-hunks");
  for (const breaks of [true, false]) {
    await serving(
      (_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(streamOf(events.slice(0, 6)), () => breaks && response.destroy());
      },
      async (url) => {
        const edit = new Edit(request);
        const { kind } = await edit.run(client(url, breaks ? PATIENT : IMPATIENT), () => undefined);
        assert.equal(kind, "partial");
      },
    );
  }
});

test("hunks that do not add up to the announced result are not applied", async () => {
  const { request, events } = fixture("one-line");
  const wrong = events.map((event) => (event.type === "hunk" ? { ...event, text: "    return 3\n" } : event));
  await serving(
    (_, response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(streamOf(wrong)),
    async (url) => {
      assert.equal((await new Edit(request).run(client(url), () => undefined)).kind, "failed");
    },
  );
});

test("cancelling an edit closes its connection at once", async () => {
  const { request, events } = fixture("one-line");
  let closed: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => (closed = resolve));
  await serving(
    (_, response) => {
      response.on("close", closed);
      response.writeHead(200, { "content-type": "text/event-stream" }).write(streamOf(events.slice(0, 2)));
    },
    async (url) => {
      const edit = new Edit(request);
      const ending = await edit.run(client(url), () => {
        edit.cancel();
      });
      await gone;
      assert.equal(ending.kind, "cancelled");
    },
  );
});

test("whatever answers instead of the service becomes one failure of the right kind, with a sentence", async () => {
  const error = JSON.stringify({ error: { message: "Because.", type: "x", param: null, code: null } });
  const cases: readonly (readonly [number, string, string])[] = [
    [401, error, "unauthorized"],
    [401, "", "unauthorized"],
    [429, error, "busy"],
    [503, error, "busy"],
    [501, error, "unsupported"],
    [400, error, "refused"],
    [404, "<html>nginx</html>", "odd"],
    [502, "<html>proxy</html>", "odd"],
    [200, "<html>proxy</html>", "odd"],
    [200, "{", "odd"],
    [200, error, "odd"],
    [200, "[]", "odd"],
    [200, "null", "odd"],
  ];
  for (const [status, body, kind] of cases) {
    await serving(
      (_, response) => response.writeHead(status, { "content-type": "application/json" }).end(body),
      async (url) => {
        const infill = {
          input_prefix: "",
          prompt: "",
          input_suffix: "",
          input_extra: [],
          n_predict: 1,
          t_max_predict_ms: 1,
          speculation: true,
        };
        for (const call of [() => client(url).infill(infill, NEVER), () => client(url).probe(NEVER)]) {
          const failure = await call().then(
            () => assert.fail(),
            (reason: unknown) => reason,
          );
          assert.ok(failure instanceof Failure, String(failure));
          assert.equal(failure.kind, kind, body);
          assert.match(failure.message, /\.$/);
        }
        const { kind: end, message } = await new Edit(fixture("one-line").request).run(client(url), () => undefined);
        assert.equal(end, "failed");
        assert.match(message, /\.$/);
      },
    );
  }
});

test("a service that does not answer is offline after a while, and one that is not there at once", async () => {
  await serving(
    () => undefined,
    async (url) => {
      await assert.rejects(client(url, IMPATIENT).probe(NEVER), { kind: "offline" });
    },
  );
  await assert.rejects(client("http://127.0.0.1:1").probe(NEVER), { kind: "offline" });
});

test("the key goes along with every request, and requests are as the protocol has them", async () => {
  const { request } = fixture("range");
  let body = "";
  await serving(
    (message, response) => {
      assert.equal(message.headers.authorization, "Bearer secret");
      message.on("data", (data: Buffer) => (body += data.toString()));
      message.on("end", () => response.writeHead(204).end());
    },
    async (url) => {
      await new Edit(request).run(client(url), () => undefined);
      await client(url).cancel("edit/1");
    },
  );
  assert.deepEqual(JSON.parse(body), { ...request, stream: true });
});

test("texts are hashed as the protocol hashes them", async () => {
  const start = fixture("astral").events[0];
  assert.ok(start?.type === "start");
  assert.equal(await sha256(fixture("astral").base), start.document.sha256);
});
