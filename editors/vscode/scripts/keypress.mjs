// Measures what a user waits for: from the key press that starts an edit to the first change on the screen, and to the last.
//
// keypress.mjs PROGRAM [ROUNDS]   the program is `lookup-spec`; with the smallest embedded model
//
// With speculation and without, in turns, in two windows of one browser and against one service. Each window has a file of its own,
// of the same text, so that neither finds what the other had computed; each round asks for another new name, so that no answer
// is one that was given before. All are done by keys; the file is computed ahead of each edit, as when somebody has it open.
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import "./build.mjs";
import { launchBrowser, serveEditor, settle } from "./editor.mjs";
import { CODE, renamed, toRename } from "./example.mjs";
import { watchChanges } from "./in-page.mjs";
import { QUIET, slept, until, Workbench } from "./workbench.mjs";
import { startRealService } from "../test/service/real.mjs";

const NAMES = ["gross", "amount", "charge", "price_of", "billed", "sum_up", "due", "cost"];
const AHEAD = 10_000; // milliseconds for computing the file ahead
const RESULT = "build/keypress.json";

const [program, rounds = "5"] = process.argv.slice(2);
const names = NAMES.slice(0, Number(rounds));
const folder = mkdtempSync(join(tmpdir(), "keypress-"));
const service = await startRealService(program);
const editor = await serveEditor(folder);
const browser = await launchBrowser(mkdtempSync(join(tmpdir(), "profile-")), {
  headless: true,
  viewport: { width: 1200, height: 800 },
});

/** A window with the file open. */
async function window(speculation) {
  const file = speculation ? "billing_a.py" : "billing_b.py";
  const page = await browser.newPage();
  await settle(page, {
    ...QUIET,
    "lookupSpec.url": service.url,
    "lookupSpec.speculation": speculation,
    "lookupSpec.nextEdit": false,
  });
  const workbench = await Workbench.open(page, editor.address);
  await workbench.telling("codicon-zap");
  await workbench.openFile(file);
  return { speculation, workbench };
}

/** One edit, from its key press, and then back. */
async function measured({ speculation, workbench }, name) {
  const { page } = workbench;
  await page.bringToFront();
  await workbench.focus();
  await workbench.press("Control+Home");
  await slept(AHEAD);
  await page.evaluate(watchChanges);
  await workbench.ask(toRename(name));
  const over = async () => (await page.evaluate(() => globalThis.seen.last)) !== undefined;
  await until(over, "the edit is over, and changed something");
  await workbench.lenses.first().waitFor();
  const { first, last } = await page.evaluate(() => globalThis.seen);
  const right = (await workbench.lines()).join("\n").trimEnd() === renamed(name).trimEnd();
  const told = await workbench.told();
  await workbench.run("lookup-spec: Take All Changes Back");
  await workbench.lenses.first().waitFor({ state: "hidden" });
  const round = { name, speculation, first: Math.round(first), last: Math.round(last), right, told };
  console.log(JSON.stringify(round));
  return round;
}

try {
  writeFileSync(join(folder, "billing_a.py"), CODE);
  writeFileSync(join(folder, "billing_b.py"), CODE);
  const windows = [await window(true), await window(false)];
  const all = [];
  for (const [n, name] of names.entries()) {
    for (const one of n % 2 === 0 ? windows : [...windows].reverse()) {
      all.push(await measured(one, name));
    }
  }
  const median = (speculation, what) => {
    const values = all.filter((one) => one.speculation === speculation).map((one) => one[what]);
    return values.sort((one, other) => one - other)[values.length >> 1];
  };
  const row = (what) => {
    const [on, off] = [median(true, what), median(false, what)];
    return { "with speculation, ms": on, "without, ms": off, ratio: Number((off / on).toFixed(2)) };
  };
  console.log(`medians of ${names.length} rounds, from the key press:`);
  console.table({ "first change": row("first"), "all changes": row("last") });
  mkdirSync("build", { recursive: true });
  writeFileSync(RESULT, `${JSON.stringify({ rounds: all, first: row("first"), last: row("last") }, undefined, 2)}\n`);
  console.log(`all rounds: ${RESULT}`);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser.close();
  editor.stop();
  await service.stop();
}
process.exit();
