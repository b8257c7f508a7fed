// The service that this page came from: its routes, and what goes wrong with them in words.

import { eventsOf } from "./sse.js";

export class ServiceError extends Error {
  /**
   * @param {string} message a sentence for the user
   * @param {{status?: number, retryAfter?: number}} [about]
   */
  constructor(message, { status = 0, retryAfter = 0 } = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export class Service {
  key = "";

  /** What the service's first model is called, and how many tokens it holds. */
  async model() {
    const { data } = await (await this.#ask("GET", "v1/models")).json();
    return { name: data[0].id, tokens: data[0].max_model_len };
  }

  /** How many answers the service works on, of how many at a time. */
  async load() {
    const slots = await (await this.#ask("GET", "slots")).json();
    return { busy: slots.filter((slot) => slot.is_processing).length, total: slots.length };
  }

  /** Computes a document ahead; whether that worked does not matter. */
  async warm(document) {
    try {
      await this.#ask("POST", "v1/edits/warm", { document });
    } catch {
      // The edit itself will say what is wrong.
    }
  }

  /** The events of an edit. A stream that breaks off is an error. */
  async *edit(body, signal) {
    const response = await this.#ask("POST", "v1/edits", { ...body, stream: true }, signal);
    let last = null;
    try {
      for await (const event of eventsOf(response.body)) yield (last = event);
    } catch (error) {
      if (error.name === "AbortError") throw error;
    }
    if (last?.type !== "done" && last?.type !== "error") {
      throw new ServiceError("The connection ended before the edit did; what has come is not all of it.");
    }
  }

  /** Ends a running edit; its stream then says so. */
  async cancel(id) {
    await this.#ask("DELETE", `v1/edits/${encodeURIComponent(id)}`);
  }

  async #ask(method, path, body, signal) {
    const headers = { ...(body && { "content-type": "application/json" }) };
    if (this.key) headers.authorization = `Bearer ${this.key}`;
    let response;
    try {
      response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ServiceError("The service cannot be reached. Is it still running?");
    }
    if (!response.ok) throw await complaint(response);
    return response;
  }
}

async function complaint(response) {
  const retryAfter = Number(response.headers.get("retry-after")) || 0;
  let message = `The service answered with status ${response.status}.`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // Something between the page and the service answered; its status has to do.
  }
  return new ServiceError(message, { status: response.status, retryAfter });
}
