// Light, dark, or as the system has it.

const CHOICES = ["auto", "light", "dark"];
const KEPT = "lookup-spec-theme";

/** @param {HTMLSelectElement} select */
export function chooseTheme(select) {
  const apply = (choice) => {
    if (choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
  };
  const kept = read();
  select.value = CHOICES.includes(kept) ? kept : "auto";
  apply(select.value);
  select.addEventListener("change", () => {
    apply(select.value);
    keep(select.value);
  });
}

function read() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null; // The browser keeps nothing for this page; the choice holds until it is closed.
  }
}

function keep(choice) {
  try {
    localStorage.setItem(KEPT, choice);
  } catch {
    // See above.
  }
}
