// Functions that run in VS Code's page. Each is sent there alone, so none uses another.

/** Has VS Code for the browser begin with settings, before its own script reads what it begins with. */
export function beginWith(configurationDefaults) {
  const watch = new MutationObserver(() => {
    const place = document.getElementById("vscode-workbench-web-configuration");
    if (place !== null) {
      watch.disconnect();
      place.dataset.settings = JSON.stringify({ ...JSON.parse(place.dataset.settings), configurationDefaults });
    }
  });
  watch.observe(document, { childList: true, subtree: true });
}

/** Counts what has one of the theme's colours behind it: text by an element of its own, what is put beside a line by a style. */
export function countMarked(name) {
  const probe = document.querySelector(".monaco-workbench").appendChild(document.createElement("i"));
  probe.style.backgroundColor = `var(--vscode-${name.replace(".", "-")})`;
  const color = getComputedStyle(probe).backgroundColor;
  probe.remove();
  const behind = [...document.querySelectorAll(".view-overlays .cdr")].map((one) => getComputedStyle(one));
  const beside = [...document.querySelectorAll(".view-line span")].map((one) => getComputedStyle(one, "::after"));
  return [...behind, ...beside].filter(({ backgroundColor }) => backgroundColor === color).length;
}

/**
 * From the next Enter on, notes when the first change showed, and when the text had changed.
 *
 * @returns nothing; `globalThis.seen` has milliseconds since the key press.
 */
export function watchChanges() {
  const seen = {};
  globalThis.seen = seen;
  const text = () => document.querySelector(".editor-instance .view-lines").textContent;
  const before = text();
  const probe = document.querySelector(".monaco-workbench").appendChild(document.createElement("i"));
  probe.style.backgroundColor = "var(--vscode-diffEditor-removedLineBackground)";
  const color = getComputedStyle(probe).backgroundColor;
  probe.remove();
  const marked = () =>
    [...document.querySelectorAll(".view-overlays .cdr")].some(
      (one) => getComputedStyle(one).backgroundColor === color,
    );
  const pressed = (event) => {
    if (event.key !== "Enter") {
      return;
    }
    document.removeEventListener("keydown", pressed, true);
    const began = event.timeStamp;
    const look = () => {
      const changed = text() !== before;
      const now = performance.now() - began;
      if (seen.first === undefined && (changed || marked())) {
        seen.first = now;
      }
      if (changed) {
        seen.last = now;
      } else {
        requestAnimationFrame(look);
      }
    };
    requestAnimationFrame(look);
  };
  document.addEventListener("keydown", pressed, true);
}
