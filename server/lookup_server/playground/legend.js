// The key to the colours. Each entry counts its tokens, and when pressed lets only them stand out.

import { make } from "./dom.js";
import { FAMILIES, familyOf } from "./sources.js";

/**
 * @param {HTMLElement} place for the entries
 * @param {HTMLElement} stage whose tokens stand out: its `data-only` names a family
 */
export function legend(place, stage) {
  const counts = new Map();
  const numbers = new Map();
  const buttons = FAMILIES.map((family) => {
    const number = make("span", { className: "count" });
    numbers.set(family.id, number);
    const swatch = make("span", { className: "token swatch", ariaHidden: "true", data: { family: family.id } });
    const button = make("button", { type: "button", title: family.about, ariaPressed: "false" }, swatch, family.name, number);
    button.addEventListener("click", () => {
      const only = stage.dataset.only === family.id ? "" : family.id;
      stage.dataset.only = only;
      buttons.forEach((other, n) => (other.ariaPressed = String(FAMILIES[n].id === only)));
    });
    return button;
  });
  place.append(...buttons);
  const show = () => {
    FAMILIES.forEach(({ id, sources }, n) => {
      numbers.get(id).textContent = counts.get(id) ?? 0;
      // What no model of this version says needs no place.
      buttons[n].hidden = sources.length === 0 && !counts.get(id);
    });
  };
  show();
  return {
    clear() {
      counts.clear();
      show();
    },
    /** @param {import("./edit.js").Token[]} tokens */
    count(tokens) {
      for (const { source } of tokens) {
        const { id } = familyOf(source);
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
      show();
    },
  };
}
