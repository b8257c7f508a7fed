// The answer as a diff in which every token shows what proposed it.

import { make } from "./dom.js";
import { bare, linesOf } from "./lines.js";
import { familyOf } from "./sources.js";

const SIGNS = { kept: " ", added: "+", removed: "−", outside: " ", open: " " };
const SPOKEN = { added: "added: ", removed: "removed: ", outside: "not part of the file: " };

export class AnswerView {
  /** @param {HTMLElement} place a scrolling box that is this view's alone */
  constructor(place) {
    this.place = place;
    this.clear();
  }

  clear() {
    this.place.replaceChildren();
    this.rows = [];
    this.texts = [];
    this.told = 0;
    this.shift = 0;
    this.first = 0;
    this.lastStep = 0;
  }

  /** @param {import("./edit.js").Edit} edit @param {object} event the one that it took last */
  show(edit, event) {
    const follow = this.place.scrollHeight - this.place.scrollTop - this.place.clientHeight < 60;
    if (event.type === "start") this.first = event.range.start_line;
    if (event.type === "trace") this.#write(event);
    for (; this.told < edit.hunks.length; this.told += 1) this.#change(edit, edit.hunks[this.told]);
    if (event.type === "done") this.#end(edit);
    if (follow) this.place.scrollTop = this.place.scrollHeight;
  }

  #write({ tokens, step }) {
    for (const { text, source } of tokens) {
      const [head, ...more] = text.split("\n");
      this.#token(head, source, step, more.length > 0);
      more.forEach((part, n) => {
        this.#row();
        if (part || n + 1 < more.length) this.#token(part, source, step, n + 1 < more.length);
      });
    }
  }

  #token(text, source, step, ends) {
    if (!this.rows.length) this.#row();
    const family = familyOf(source);
    const token = make("span", { className: "token", title: `${source || "the model's own"} · pass ${step}` }, text);
    token.dataset.family = family.id;
    if (step !== this.lastStep) token.dataset.step = step;
    if (ends) token.dataset.end = "";
    this.lastStep = step;
    this.rows.at(-1).lastChild.append(token);
    this.texts[this.texts.length - 1] += text;
  }

  #row() {
    this.rows.push(row("open", this.first + this.rows.length + 1));
    this.texts.push("");
    this.place.append(this.rows.at(-1));
  }

  /** Marks the lines that a hunk brings, and shows those that it removes before them. */
  #change(edit, { old, text }, moved = 0) {
    const at = old.start_line - this.first + this.shift + moved;
    const added = linesOf(text).length;
    for (let n = at; n < at + added && n < this.rows.length; n += 1) mark(this.rows[n], "added");
    const removed = edit.lines.slice(old.start_line, old.end_line).map((line, n) => {
      const gone = row("removed", old.start_line + n + 1);
      gone.lastChild.append(bare(line));
      return gone;
    });
    if (this.rows[at]) this.rows[at].before(...removed);
    else this.place.append(...removed);
    this.shift += added - removed.length;
  }

  /** Marks what was kept and what is no part of the file, now that all hunks are known. */
  #end(edit) {
    if (!edit.complete) return;
    const result = linesOf(edit.text).map(bare);
    const end = edit.start.range.end_line + this.shift;
    const file = result.slice(this.first, end);
    const moved = placeOf(file, this.texts);
    if (moved > 0) this.#realign(edit, moved);
    this.rows.forEach((line, n) => {
      if (moved < 0 || n < moved || n >= moved + file.length) mark(line, "outside");
      else if (line.dataset.kind === "open") mark(line, "kept");
    });
  }

  /** The model said something before the file: all marks are that much further down. */
  #realign(edit, moved) {
    for (const gone of this.place.querySelectorAll("[data-kind=removed]")) gone.remove();
    for (const line of this.rows) mark(line, "open");
    this.shift = 0;
    for (const hunk of edit.hunks) this.#change(edit, hunk, moved);
  }
}

function row(kind, number) {
  const line = make(
    "div",
    { className: "line" },
    make("span", { className: "number", ariaHidden: "true" }, String(number)),
    make("span", { className: "sign", ariaHidden: "true" }),
    make("span", { className: "spoken" }),
    make("code"),
  );
  mark(line, kind);
  return line;
}

function mark(line, kind) {
  line.dataset.kind = kind;
  line.children[1].textContent = SIGNS[kind];
  line.children[2].textContent = SPOKEN[kind] ?? "";
}

/** Where some lines stand among others; -1 if they do not, or there are none. */
function placeOf(lines, among) {
  for (let start = 0; start + lines.length <= among.length; start += 1) {
    if (lines.every((line, n) => line === among[start + n])) return start;
  }
  return -1;
}
