// The latest forward passes as bars: how many guesses each checked, how many were right, and how busy the service was.

import { draw } from "./dom.js";

const SHOWN = 60;
const WIDE = 10;
const HEIGHT = 100;
const STRIP = 16;
const LEAST = 8;

export class Chart {
  /** @param {SVGElement} place @param {HTMLElement} words says the same in words */
  constructor(place, words) {
    this.place = place;
    this.words = words;
    place.setAttribute("preserveAspectRatio", "xMinYMin meet");
    place.setAttribute("viewBox", `0 -12 ${SHOWN * WIDE} ${HEIGHT + STRIP + 20}`);
    this.clear();
  }

  clear() {
    this.passes = [];
    this.#draw();
  }

  /**
   * @param {import("./edit.js").Pass} pass
   * @param {{busy: number, total: number}} load of the service at the time
   */
  add(pass, load) {
    this.passes = [...this.passes, { ...pass, load }].slice(-SHOWN);
    this.#draw();
  }

  #draw() {
    const most = Math.max(LEAST, ...this.passes.map((pass) => pass.drafted));
    const tall = (tokens) => (tokens / (most + 1)) * HEIGHT;
    this.place.replaceChildren(
      draw("path", { class: "axis", d: `M0 ${HEIGHT}.5H${SHOWN * WIDE}M0 ${HEIGHT + STRIP + 6}.5H${SHOWN * WIDE}` }),
      draw("text", { x: 0, y: -2 }, `${most} guesses a pass`),
      ...this.passes.flatMap(({ drafted, accepted, load }, n) => [
        bar("checked", n, HEIGHT, tall(drafted)),
        bar("right", n, HEIGHT, tall(accepted)),
        bar("own", n, HEIGHT - tall(accepted), tall(1)),
        bar("busy", n, HEIGHT + STRIP + 6, (load.busy / load.total) * STRIP),
      ]),
    );
    this.words.textContent = this.passes.length ? said(this.passes) : "No pass yet.";
  }
}

function bar(kind, n, bottom, height) {
  return draw("rect", { class: kind, x: n * WIDE + 1, width: WIDE - 2, y: bottom - height, height });
}

function said(passes) {
  const [drafted, accepted] = ["drafted", "accepted"].map((name) => passes.reduce((sum, pass) => sum + pass[name], 0));
  const { busy, total } = passes.at(-1).load;
  const share = drafted ? `, ${Math.round((100 * accepted) / drafted)} % of them right` : "";
  const latest = passes.length === 1 ? "The latest pass" : `The latest ${passes.length} passes`;
  return `${latest}: ${drafted} guesses checked${share}. Answers running: ${busy} of ${total} places.`;
}
