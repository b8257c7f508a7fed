// Running an edit, once or in both ways, and what comes of it.

import { sha256 } from "./lines.js";
import { verdict } from "./verdict.js";

const LANES = { on: ["on"], off: ["off"], after: ["on", "off"], together: ["on", "off"] };
const NAMES = { on: "With speculation", off: "Plain decoding" };
const LOAD_EVERY = 1000; // milliseconds

/** @typedef {"on" | "off" | "after" | "together"} Way */

export class Runs {
  #running = null;
  #load = { busy: 0, total: 1 };

  /**
   * @param {import("./service.js").Service} service
   * @param {{on: import("./lane.js").Lane, off: import("./lane.js").Lane}} lanes
   * @param {object} shown `say(text)`, and `chart` and `families` for the first lane that runs
   */
  constructor(service, lanes, shown) {
    this.service = service;
    this.lanes = lanes;
    this.shown = shown;
  }

  get active() {
    return this.#running !== null;
  }

  /** The edited document, of the first lane that has it whole; null if none has. */
  get result() {
    const edit = Object.values(this.lanes).find((lane) => lane.edit?.complete)?.edit;
    return edit ? edit.text : null;
  }

  /**
   * Runs an edit to its end.
   * @param {Way} way
   * @param {(lane: string) => object} body of the request, for each lane
   * @returns {Promise<object | null>} the verdict, if there are two runs to compare
   * @throws {Error} whose message is for the user; whose name is AbortError after `stop`
   */
  async run(way, body) {
    const names = LANES[way];
    const running = (this.#running = { abort: new AbortController(), ids: [], stopped: false });
    for (const [name, lane] of Object.entries(this.lanes)) lane.prepare(names.includes(name));
    this.shown.chart.clear();
    this.shown.families.clear();
    await this.#poll();
    const polling = setInterval(() => this.#poll(), LOAD_EVERY);
    try {
      const work = names.map((name, n) => () => this.#one(name, body(name), n === 0));
      if (way === "together") await Promise.all(work.map((one) => one()));
      else for (const one of work) if (!running.stopped) await one();
      return this.#conclude(names, way);
    } finally {
      running.abort.abort();
      clearInterval(polling);
      this.#running = null;
    }
  }

  /** Ends what runs; what has not come stays as it was. */
  async stop() {
    const running = this.#running;
    if (!running) return;
    running.stopped = true;
    const ended = await Promise.allSettled(running.ids.map((id) => this.service.cancel(id)));
    if (!ended.some((one) => one.status === "fulfilled")) running.abort.abort();
  }

  async #one(name, body, first) {
    const running = this.#running;
    const lane = this.lanes[name];
    const edit = lane.begin(body.document.text);
    this.shown.say(`${NAMES[name]}: reading the file.`);
    try {
      for await (const event of this.service.edit(body, running.abort.signal)) {
        if (event.type === "start") running.ids.push(event.edit_id);
        lane.take(event);
        if (event.type !== "trace") continue;
        if (event.step === 1) this.shown.say(`${NAMES[name]}: writing.`);
        if (!first) continue;
        this.shown.chart.add(event, this.#load);
        this.shown.families.count(event.tokens);
      }
      if (edit.problem) throw new Error(edit.problem);
      await check(edit);
    } catch (error) {
      lane.fail(error.name === "AbortError" ? "stopped" : "failed");
      throw error;
    }
  }

  #conclude(names, way) {
    const { done, passes, tokens, hunks } = this.lanes[names[0]].edit;
    const both = names.length === 2 ? verdict(this.lanes.on.edit, this.lanes.off.edit, way === "together") : null;
    if (this.#running.stopped) this.shown.say("Stopped.");
    else if (done.truncated) this.shown.say(`Ended early after ${tokens} tokens: ${this.lanes[names[0]].end}.`);
    else {
      const changes = hunks.length === 1 ? "1 change" : `${hunks.length || "no"} changes`;
      this.shown.say(`Done: ${changes}, ${tokens} tokens in ${passes.length} passes.${both ? ` ${both.title}.` : ""}`);
    }
    return both;
  }

  async #poll() {
    try {
      this.#load = await this.service.load();
    } catch {
      // The chart keeps the last load; an edit that fails says why.
    }
  }
}

/** The document put together here must be the one that the service means. */
async function check(edit) {
  const hash = await sha256(edit.text);
  if (hash !== null && hash !== edit.done.result_sha256) {
    throw new Error("The hunks do not make the document that the service has; please report this.");
  }
}
