// The page: wires the form, the service and what is shown together.

import { Chart } from "./chart.js";
import { byId } from "./dom.js";
import { Form } from "./form.js";
import { Lane } from "./lane.js";
import { legend } from "./legend.js";
import { Runs } from "./runs.js";
import { Service } from "./service.js";
import { chooseTheme } from "./theme.js";

const WARM_AFTER = 400; // milliseconds without a key press
const PAGE = Math.random().toString(36).slice(2); // two pages must not make each other's edits stale

const service = new Service();
const form = new Form(say, warmSoon);
const lanes = { on: new Lane(byId("lane-on")), off: new Lane(byId("lane-off")) };
const chart = new Chart(byId("chart"), byId("chart-words"));
const families = legend(byId("legend"), byId("result"));
const runs = new Runs(service, lanes, { say, chart, families });
let warmed = "";
let timer = 0;

function say(text) {
  byId("status").textContent = text;
}

function complain(error) {
  const wait = error?.retryAfter ? ` (It asks to wait ${error.retryAfter} s.)` : "";
  byId("problem").textContent = error ? error.message + wait : "";
  byId("problem").hidden = !error;
  if (error?.status === 401) {
    byId("key-field").hidden = false;
    byId("key").focus();
  }
}

function judge(verdict) {
  byId("verdict").hidden = !verdict;
  byId("verdict").dataset.equal = verdict?.equal ?? "";
  byId("verdict-title").textContent = verdict?.title ?? "";
  byId("verdict-about").textContent = verdict?.about ?? "";
}

async function run() {
  if (runs.active) return;
  const { way, task } = form;
  complain(null);
  judge(null);
  busy(true);
  byId("lanes").dataset.count = ["after", "together"].includes(way) ? 2 : 1;
  try {
    judge(
      await runs.run(way, (lane) => ({
        ...task,
        document: form.document(PAGE, lane),
        options: { ...task.options, speculation: lane === "on" },
      })),
    );
  } catch (error) {
    const stopped = error.name === "AbortError";
    say(stopped ? "Stopped." : "");
    if (!stopped) complain(error);
  } finally {
    busy(false);
  }
}

function busy(yes) {
  byId("run").disabled = yes;
  byId("stop").disabled = !yes;
  byId("lanes").ariaBusy = String(yes);
  for (const id of ["copy", "keep"]) byId(id).disabled = yes || runs.result === null;
}

async function copy() {
  try {
    await navigator.clipboard.writeText(runs.result);
    say("The result is copied.");
  } catch {
    form.use(runs.result);
    form.source.select();
    say("This browser keeps pages from copying; the result is in the file's place and selected: press Ctrl+C.");
  }
}

/** While the user is still typing, the service can read the file. */
function warmSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const document = form.document(PAGE, "on");
    if (runs.active || !document.text || JSON.stringify(document) === warmed) return;
    warmed = JSON.stringify(document);
    service.warm(document);
  }, WARM_AFTER);
}

async function greet() {
  try {
    const { name, tokens } = await service.model();
    byId("model").textContent = `${name} · ${tokens.toLocaleString("en")} tokens`;
    complain(null);
  } catch (error) {
    byId("model").textContent = "not connected";
    complain(error);
  }
}

chooseTheme(byId("theme"));
document.forms.ask.addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
byId("stop").addEventListener("click", () => runs.stop());
byId("copy").addEventListener("click", copy);
byId("keep").addEventListener("click", () => {
  form.use(runs.result);
  form.instruction.focus();
  form.instruction.select();
  say("The result is the file now; ask for the next change.");
});
byId("key").addEventListener("change", () => {
  service.key = byId("key").value.trim();
  greet();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    run();
  }
  if (event.key === "Escape") runs.stop();
});
greet();
