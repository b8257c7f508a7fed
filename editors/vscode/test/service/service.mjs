// A service that says what a test tells it to, over real HTTP, and remembers what it was asked.
//
// POST /script sets how it behaves, POST /go lets a held stream go on, GET /log returns the requests since the script.
import { createHash } from "node:crypto";
import { createServer } from "node:http";

/** The parts of a script, and what holds if they are left out. */
const DEFAULTS = {
  hunks: undefined, // instead of a recording: [{ old: { start_line, end_line }, text }]
  finish: "stop",
  pace: 0, // milliseconds between two events
  hold: undefined, // waits before this event, until /go
  cut: undefined, // breaks the connection before this event
  infill: "", // what is filled in
  latency: 0, // milliseconds before filling in
  trouble: "", // instead of answering: "401", "501", "html", "invalid", "error", "hang", "foreign"
};

/** @param port any free one if it is 0. */
export async function startService(fixtures, port = 0) {
  const recordings = new Map(fixtures.map((fixture) => [fixture.name, fixture]));
  let script = DEFAULTS;
  let log = [];
  let go = () => {};

  const trouble = (response) => {
    const json = { "content-type": "application/json" };
    const error = JSON.stringify({ error: { message: "This is a test.", type: "test", param: null, code: null } });
    switch (script.trouble) {
      case "401":
      case "501":
        response.writeHead(Number(script.trouble), { ...CORS, ...json }).end(error);
        return true;
      case "error":
        response.writeHead(200, { ...CORS, ...json }).end(error);
        return true;
      case "html":
        response.writeHead(502, { ...CORS, "content-type": "text/html" }).end("<html>proxy</html>");
        return true;
      case "invalid":
        response.writeHead(200, { ...CORS, ...json }).end("{");
        return true;
      case "hang":
        return true;
      default:
        return false;
    }
  };

  // A server that completes, and has never heard of edits.
  const foreign = (response) => {
    if (script.trouble === "foreign") {
      response.writeHead(404, { ...CORS, "content-type": "text/html" }).end("<h1>404 Not Found</h1>");
      return true;
    }
    return false;
  };

  const stream = async (body, response) => {
    const name = body.document.uri.split("/").at(-1).replace(/\.py$/, "");
    const events = script.hunks ? scripted(body, script) : recorded(recordings.get(name), body);
    response.writeHead(200, { ...CORS, "content-type": "text/event-stream; charset=utf-8" });
    response.write(": hb\n\n");
    for (const [n, event] of events.entries()) {
      if (n === script.hold) {
        await new Promise((resolve) => (go = resolve));
      }
      if (n === script.cut) {
        response.destroy();
        return;
      }
      response.write(`data: ${JSON.stringify(event)}\n\n`);
      await new Promise((resolve) => setTimeout(resolve, script.pace));
    }
    response.end();
  };

  const routes = {
    "/script": (body, response) => {
      script = { ...DEFAULTS, ...body };
      log = [];
      json(response, {});
    },
    "/go": (_, response) => {
      go();
      json(response, {});
    },
    "/log": (_, response) => json(response, log),
    "/v1/models": (_, response) => trouble(response) || json(response, { data: [{ id: "scripted" }] }),
    "/v1/edits/warm": (_, response) => foreign(response) || trouble(response) || json(response, { warm: true }),
    "/v1/edits": (body, response) => trouble(response) || stream(body, response),
    "/infill": (_, response) => {
      const { infill, latency } = script;
      return trouble(response) || setTimeout(() => json(response, { content: infill }), latency);
    },
  };

  const server = createServer((request, response) => {
    if (request.method === "OPTIONS") {
      response.writeHead(204, CORS).end();
      return;
    }
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const body = parts.length > 0 ? JSON.parse(Buffer.concat(parts).toString("utf-8")) : {};
      const route = routes[request.url];
      if (!["/script", "/go", "/log"].includes(request.url)) {
        const entry = { path: request.url, body, at: Date.now(), ended: undefined };
        log.push(entry);
        response.on("close", () => (entry.ended = response.writableFinished ? "whole" : "cut"));
      }
      if (route) {
        route(body, response);
      } else {
        json(response, {}, 404);
      }
    });
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

const CORS = {
  "access-control-allow-origin": "*",
  "access-control-allow-headers": "*",
  "access-control-allow-methods": "*",
};

function json(response, value, status = 200) {
  response.writeHead(status, { ...CORS, "content-type": "application/json" }).end(JSON.stringify(value));
}

/** A recording, for a document that the editor may have altered (it takes off the byte-order mark). */
function recorded(fixture, body) {
  return fixture.events.map((event) => ({
    ...event,
    ...(event.type === "start" && { document: { ...event.document, sha256: sha256(body.document.text) } }),
    ...(event.type === "done" && { result_sha256: sha256(fixture.final.replace(/^\uFEFF/, "")) }),
  }));
}

/** The events of an edit that makes these hunks. */
function scripted(body, { hunks, finish }) {
  const { text } = body.document;
  const lines = text.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+/g) ?? [];
  const result = [...lines];
  for (const { old, text: added } of [...hunks].reverse()) {
    result.splice(old.start_line, old.end_line - old.start_line, added);
  }
  const head = (type) => ({ type, edit_id: "edit-1", uri: body.document.uri });
  const place = (line) => ({ old_line: line, old_lines: lines.length, new_lines: line });
  const all = { start_line: 0, end_line: lines.length };
  const progress = (line) => ({
    ...head("progress"),
    ...place(line),
    tokens: 10 * line,
    accepted: 8 * line,
    rejected: line,
  });
  return [
    {
      ...head("start"),
      model: "scripted",
      document: { sha256: sha256(text), lines: lines.length },
      range: all,
      narrowed: false,
    },
    ...hunks.flatMap(({ old, text: added }, n) => [
      progress(old.start_line),
      {
        ...head("hunk"),
        hunk_id: n,
        state: "open",
        old: { start_line: old.start_line, end_line: old.start_line },
        text: "",
      },
      {
        ...head("hunk"),
        hunk_id: n,
        state: "delta",
        old: { start_line: old.start_line, end_line: old.start_line },
        text: added,
      },
      { ...head("hunk"), hunk_id: n, state: "closed", old, text: added },
    ]),
    progress(lines.length),
    { ...head("done"), finish_reason: finish, truncated: finish === "length", result_sha256: sha256(result.join("")) },
  ].map((event, seq) => ({ ...event, seq }));
}

function sha256(text) {
  return createHash("sha256").update(text, "utf-8").digest("hex");
}
