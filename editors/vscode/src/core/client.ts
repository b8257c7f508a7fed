/** The service over HTTP. Every call ends at once when its signal does, and so does the service's work on it. */

import { Failure, failureOf } from "./failure";
import { eventFrom, isFields } from "./protocol";
import type { EditEvent, EditRequest, InfillRequest, WarmRequest } from "./protocol";
import { SseParser } from "./sse";

/** Where the service is. */
export interface Endpoint {
  /** Without a slash at its end, e.g. `http://127.0.0.1:8012`. */
  readonly url: string;
  readonly key: string | undefined;
}

/** How long to wait for something, in milliseconds. */
export interface Patience {
  readonly health: number;
  readonly infill: number;
  /** Between two pieces of a stream; the service sends a comment every 15 seconds. */
  readonly silence: number;
}

const PATIENCE: Patience = { health: 4_000, infill: 20_000, silence: 60_000 };

export class Client {
  constructor(
    private readonly endpoint: Endpoint,
    private readonly patience: Patience = PATIENCE,
  ) {}

  /**
   * Streams an edit. The last event is `done` or `error`; leaving the loop closes the connection.
   *
   * @throws Failure the service cannot be reached, refuses, or its stream ends on the way.
   * @throws DOMException (AbortError) the signal ended it.
   */
  async *edit(request: EditRequest, signal: AbortSignal): AsyncGenerator<EditEvent, void, void> {
    const watch = new Watch(signal, this.patience.silence);
    try {
      const response = await this.post("/v1/edits", { ...request, stream: true }, watch.signal);
      if (response.body === null || !(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
        throw new Failure("odd", `What answers at ${this.endpoint.url} does not stream edits.`);
      }
      const parser = new SseParser();
      const reader = response.body.getReader();
      for (;;) {
        watch.restart();
        const { done, value } = await reader.read();
        if (done) {
          throw new Failure("cut", "The connection ended before the edit did.");
        }
        for (const data of parser.push(value)) {
          const event = eventFrom(data);
          if (event === undefined) {
            continue;
          }
          yield event;
          if (event.type === "done" || event.type === "error") {
            return;
          }
        }
      }
    } catch (error) {
      throw this.told(error, signal, "cut");
    } finally {
      watch.end();
    }
  }

  /** Ends an edit by its id. An edit that is over already is fine. */
  async cancel(editId: string): Promise<void> {
    const path = `/v1/edits/${encodeURIComponent(editId)}`;
    await this.send(path, { method: "DELETE", headers: this.headers() }, AbortSignal.timeout(this.patience.health));
  }

  /** Has a document computed ahead. */
  async warm(request: WarmRequest, signal: AbortSignal): Promise<void> {
    await (await this.post("/v1/edits/warm", request, signal)).arrayBuffer();
  }

  /** The text at the cursor. */
  async infill(request: InfillRequest, signal: AbortSignal): Promise<string> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(this.patience.infill)]);
    try {
      const body = { ...request, response_fields: ["content"], cache_prompt: true, stream: false };
      const response = await this.post("/infill", body, limited);
      const value: unknown = await response.json();
      const content = isFields(value) ? value["content"] : undefined;
      if (typeof content !== "string") {
        throw new Failure("odd", `What answers at ${this.endpoint.url} does not fill in as lookup-spec does.`);
      }
      return content;
    } catch (error) {
      throw this.told(error, signal, "odd");
    }
  }

  /** Comes back if the service is there and takes requests, and the key is right. */
  async probe(signal: AbortSignal): Promise<string> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(this.patience.health)]);
    try {
      const response = await this.send("/v1/models", { headers: this.headers() }, limited);
      if (!response.ok) {
        throw await failureOf(response);
      }
      const value: unknown = await response.json();
      const data = isFields(value) ? value["data"] : undefined;
      const first: unknown = Array.isArray(data) ? data[0] : undefined;
      const id = isFields(first) ? first["id"] : undefined;
      if (typeof id !== "string") {
        throw new Failure("odd", `What answers at ${this.endpoint.url} is not lookup-spec.`);
      }
      return id;
    } catch (error) {
      throw this.told(error, signal, "odd");
    }
  }

  private async post(path: string, body: unknown, signal: AbortSignal): Promise<Response> {
    const headers = { ...this.headers(), "content-type": "application/json" };
    const response = await this.send(path, { method: "POST", headers, body: JSON.stringify(body) }, signal);
    if (!response.ok) {
      throw await failureOf(response);
    }
    return response;
  }

  private async send(path: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
    try {
      return await fetch(this.endpoint.url + path, { ...init, signal });
    } catch (error) {
      throw signal.aborted ? error : new Failure("offline", `No service answers at ${this.endpoint.url}.`);
    }
  }

  private headers(): Record<string, string> {
    return this.endpoint.key === undefined ? {} : { authorization: `Bearer ${this.endpoint.key}` };
  }

  /** An error as callers know it: theirs if they ended the call, ours if patience did. */
  private told(error: unknown, signal: AbortSignal, otherwise: "cut" | "odd"): unknown {
    if (signal.aborted || error instanceof Failure) {
      return error;
    }
    if (error instanceof DOMException) {
      return new Failure("offline", `The service at ${this.endpoint.url} does not answer.`);
    }
    if (error instanceof SyntaxError) {
      return new Failure("odd", `The service at ${this.endpoint.url} answered with what cannot be read.`);
    }
    return otherwise === "cut" ? new Failure("cut", "The connection broke before the edit was over.") : error;
  }
}

/** Ends a stream that has been silent for too long. */
class Watch {
  private readonly controller = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  readonly signal: AbortSignal;

  constructor(
    outer: AbortSignal,
    private readonly silence: number,
  ) {
    this.signal = AbortSignal.any([outer, this.controller.signal]);
    this.restart();
  }

  restart(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.controller.abort(new DOMException("silent for too long", "TimeoutError"));
    }, this.silence);
  }

  /** Stops waiting, and closes the connection if it is still open. */
  end(): void {
    clearTimeout(this.timer);
    this.controller.abort();
  }
}
