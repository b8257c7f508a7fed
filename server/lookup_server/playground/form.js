// What the user asks for: the file, the instruction, and how to run it.

import { byId, make } from "./dom.js";
import { SAMPLES } from "./samples.js";

const LARGEST = 4_000_000; // bytes; the service takes less than twice that

export class Form {
  /** @param {(text: string) => void} say tells the user something @param {() => void} changed */
  constructor(say, changed) {
    this.say = say;
    this.source = byId("source");
    this.name = byId("name");
    this.instruction = byId("instruction");
    byId("samples").append(...SAMPLES.map((sample) => this.#sample(sample)));
    byId("open").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", (event) => this.#read(event.target.files[0]));
    this.source.addEventListener("dragover", (event) => event.preventDefault());
    this.source.addEventListener("drop", (event) => this.#drop(event));
    this.source.addEventListener("input", () => this.#mark(null));
    this.instruction.addEventListener("input", changed);
    this.#fill(SAMPLES[0]);
  }

  /** The document as the protocol wants it, under an address that no other page uses. */
  document(page, run) {
    const path = encodeURIComponent(this.name.value.trim() || "untitled.txt");
    return { uri: `file:///${path}?page=${page}&run=${run}`, text: this.#text };
  }

  /** What is asked for, besides the document. */
  get task() {
    const number = (id) => (byId(id).value === "" ? undefined : byId(id).valueAsNumber);
    const options = { temperature: number("temperature"), seed: number("seed"), max_tokens: number("limit"), trace: true };
    return { instruction: this.instruction.value, options };
  }

  /** "on", "off", "after" (on, then off) or "together". */
  get way() {
    return document.forms.ask.elements.runs.value;
  }

  /** Puts a text into the place of the file. */
  use(text) {
    this.source.value = text;
    this.original = text;
    this.#mark(null);
  }

  /** The text with its line ends, of which a text field keeps none but LF. */
  get #text() {
    const { original, source } = this;
    if (original.replace(/\r\n?/g, "\n") === source.value) return original;
    const windows = original.includes("\r\n") && !/(^|[^\r])\n|\r(?!\n)/.test(original);
    return windows ? source.value.replaceAll("\n", "\r\n") : source.value;
  }

  #sample(sample) {
    const button = make("button", { type: "button", className: "sample", ariaPressed: "false" });
    button.append(make("strong", {}, sample.title), " ", make("span", {}, sample.name));
    button.addEventListener("click", () => {
      this.#fill(sample);
      this.say(`${sample.name} is in place.`);
    });
    return button;
  }

  #fill({ name, text, instruction }) {
    this.use(text);
    this.name.value = name;
    this.instruction.value = instruction;
    this.#mark(name);
  }

  #mark(name) {
    SAMPLES.forEach((sample, n) => {
      byId("samples").children[n].ariaPressed = String(sample.name === name);
    });
  }

  #drop(event) {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    this.#read(event.dataTransfer.files[0]);
  }

  async #read(file) {
    if (!file) return;
    if (file.size > LARGEST) {
      this.say(`${file.name} is too large for this page (${file.size.toLocaleString("en")} bytes).`);
      return;
    }
    this.name.value = file.name;
    this.use(new TextDecoder("utf-8", { ignoreBOM: true }).decode(await file.arrayBuffer()));
    this.say(`${file.name} is read.`);
    this.instruction.focus();
    this.instruction.select();
  }
}
