// One run of an edit on the page: its numbers, its progress, its answer.

import { AnswerView } from "./answer.js";
import { Edit } from "./edit.js";

export class Lane {
  edit = null;

  /** @param {HTMLElement} place the lane's section of the page */
  constructor(place) {
    this.place = place;
    this.view = new AnswerView(place.querySelector(".answer"));
    this.bar = place.querySelector("progress");
    this.state = place.querySelector(".state");
  }

  /** @param {boolean} wanted whether this lane takes part */
  prepare(wanted) {
    this.place.hidden = !wanted;
    this.edit = null;
    this.view.clear();
    this.bar.value = 0;
    this.#tell("waiting");
    this.#numbers({});
  }

  /** How its edit ended, in words. */
  get end() {
    return ENDS[this.edit.done.finish_reason] ?? this.edit.done.finish_reason;
  }

  begin(base) {
    this.edit = new Edit(base);
    this.#tell("reading the file");
    return this.edit;
  }

  /** Takes in and shows one event. */
  take(event) {
    const { edit } = this;
    edit.take(event);
    this.view.show(edit, event);
    if (event.type === "trace") this.#tell("writing");
    if (edit.progress) this.bar.value = edit.progress.old_line / Math.max(1, edit.progress.old_lines);
    if (event.type === "done") {
      if (edit.complete) this.bar.value = 1;
      this.#tell(this.end);
    }
    if (event.type === "error") this.#tell("failed");
    this.#numbers({
      rate: edit.rate ? whole(edit.rate) : "–",
      "per-pass": edit.perPass.toFixed(1),
      passes: `${edit.passes.length}`,
      tokens: `${edit.tokens}`,
      share: edit.tokens ? `${Math.round((100 * edit.lookedUp) / edit.tokens)} %` : "–",
      seconds: `${edit.seconds.toFixed(1)} s`,
    });
  }

  /** @param {string} how it ended: "failed" or "stopped" */
  fail(how) {
    this.#tell(how);
  }

  #tell(state) {
    this.state.textContent = state;
    this.place.dataset.state = state;
  }

  #numbers(values) {
    for (const place of this.place.querySelectorAll("[data-number]")) {
      place.textContent = values[place.dataset.number] ?? "–";
    }
  }
}

const ENDS = {
  stop: "done",
  no_change: "done, nothing changed",
  length: "cut off at the token limit",
  cancelled: "stopped",
  stale: "overtaken by a newer edit",
};

function whole(number) {
  return number < 10 ? number.toFixed(1) : Math.round(number).toLocaleString("en");
}
