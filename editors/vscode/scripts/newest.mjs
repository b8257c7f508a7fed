// Proves claims about the extension, as packed, in the newest VS Code, by keys and by what is on the screen and on the disk.
//
// newest.mjs [WORDS]   only claims with these words in them; pictures of what was on the screen are in build/newest/pictures
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { CLEAR, serveNewest } from "./code-server.mjs";
import { launchBrowser } from "./editor.mjs";
import { slept, until, Workbench } from "./workbench.mjs";
import { freePort } from "../test/service/port.mjs";
import { RECORDINGS, writeBases } from "../test/service/recordings.mjs";
import { startService } from "../test/service/service.mjs";

const FOLDER = "build/newest/folder";
const PICTURES = "build/newest/pictures";
const PROFILE = "build/newest/profile";
const [REMOVED, INSERTED] = ["diffEditor.removedLineBackground", "diffEditor.insertedLineBackground"];

const [words = ""] = process.argv.slice(2);
writeBases(FOLDER);
[PICTURES, PROFILE].forEach((place) => rmSync(place, { recursive: true, force: true }));
mkdirSync(PICTURES, { recursive: true });

const port = await freePort();
const service = await startService(RECORDINGS, port);
const editor = await serveNewest(FOLDER, {
  "lookupSpec.url": service.url,
  "lookupSpec.serviceCommand": [process.execPath, resolve("test/service/program.mjs")],
});
const browser = await launchBrowser(PROFILE, { headless: true, viewport: { width: 1200, height: 800 } });
const page = browser.pages()[0] ?? (await browser.newPage());
page.setDefaultTimeout(60_000);
const workbench = await Workbench.open(page, editor.address);

const tell = (path, body = {}) => fetch(`${service.url}/${path}`, { method: "POST", body: JSON.stringify(body) });
const onDisk = (name) => readFileSync(join(FOLDER, `${name}.py`), "utf-8");
const recording = (name) => RECORDINGS.find((one) => one.name === name);
const picture = (name) => page.screenshot({ path: `${PICTURES}/${name}.png` });
const waited = (name, text, what) => until(() => onDisk(name) === text, `${name}.py on the disk is ${what}`, 20_000);
async function saved(name, text, what) {
  await workbench.press("Control+S");
  await waited(name, text, what);
}

const claims = [];
const claim = (text, prove) => claims.push({ text, prove });

claim("the status item tells that the service is there, and which model it has", async () => {
  await workbench.telling("codicon-zap lookup-spec");
  await workbench.status.click();
  await page.locator(".quick-input-widget", { hasText: "lookup-spec" }).waitFor();
  await picture("menu");
  const asks = await page.locator(".quick-input-box input").getAttribute("placeholder");
  if (asks !== "scripted") {
    throw new Error(`the menu shows ${asks}`);
  }
  await workbench.press("Escape");
});

claim("an edit shows while it streams, and the document is as it was until all of it is there", async () => {
  const { base, final, events } = recording("several-hunks");
  await tell("script", { hold: events.length - 2 });
  await workbench.openFile("several-hunks.py");
  await workbench.ask("Edit it.");
  await until(async () => (await workbench.marked(REMOVED)) > 0, "lines that go are marked");
  await until(async () => (await workbench.marked(INSERTED)) > 0, "lines that come are shown");
  await picture("preview");
  await saved("several-hunks", base, "as it was");
  await tell("go");
  await workbench.lenses.first().waitFor();
  await picture("review");
  await workbench.press("Shift+Alt+Enter");
  await workbench.lenses.first().waitFor({ state: "hidden" });
  await saved("several-hunks", final, "as recorded");
  await workbench.press("Control+Z");
  await saved("several-hunks", base, "as before, after one undo");
});

claim("a change is taken back by its own button, and the others stay", async () => {
  const { base } = recording("code-left-out");
  await tell("script", { hunks: [0, 2].map((n) => ({ old: { start_line: n, end_line: n + 1 }, text: `new_${n}\n` })) });
  await workbench.openFile("code-left-out.py");
  await workbench.ask("Edit it.");
  await workbench.lenses.first().waitFor();
  await workbench.lenses.first().getByText("Take back", { exact: true }).click();
  await until(async () => (await workbench.lines())[0] === base.split("\n")[0], "the first line is as it was");
  const lines = base.split("\n");
  await workbench.press("Shift+Alt+Enter");
  await saved("code-left-out", [...lines.slice(0, 2), "new_2", ...lines.slice(3)].join("\n"), "changed in one place");
});

for (const { name, base, final, request, events } of RECORDINGS) {
  if (name === "mixed-line-ends" || final === base) {
    continue; // the editor gives a document one kind of line end
  }
  claim(`the recording ${name} ends with its final text, byte for byte, and one undo takes it back`, async () => {
    await tell("script");
    await workbench.openFile(`${name}.py`);
    for (let line = 0; line < (request.range?.end.line ?? 0); line += 1) {
      await workbench.press(line < request.range.start.line ? "ArrowDown" : "Shift+ArrowDown");
    }
    await workbench.ask("Edit it.");
    if (events.at(-1).finish_reason === "length") {
      await page.locator(".notification-toast", { hasText: "incomplete" }).waitFor();
      await picture("incomplete");
      await page.locator(".notification-toast").getByRole("button", { name: "Apply" }).click();
    }
    await workbench.lenses.filter({ hasText: "Keep" }).first().waitFor();
    await workbench.focus();
    await workbench.press("Shift+Alt+Enter");
    await workbench.lenses.first().waitFor({ state: "hidden" });
    await saved(name, final, "as recorded");
    await workbench.press("Control+Z");
    await saved(name, base, "as before, after one undo");
  });
}

claim("text shows at the cursor while one types, and Tab takes it", async () => {
  await tell("script", { infill: "urn left + right" });
  await workbench.openFile("crlf.py");
  await workbench.press("Control+End", "Enter");
  await workbench.type("ret", 50);
  await workbench.ghost.first().waitFor();
  await picture("completion");
  await workbench.press("Tab");
  await until(
    async () => (await workbench.lines()).some((line) => line.includes("return left + right")),
    "it is taken",
  );
  await workbench.press("Control+S");
  await until(() => onDisk("crlf").includes("return left + right"), "it is saved");
});

claim("typing goes on while an edit streams, and Escape stops it and leaves what was typed", async () => {
  const { base } = recording("tabs");
  await tell("script", { hunks: [{ old: { start_line: 0, end_line: 1 }, text: "new\n" }], hold: 4 });
  await workbench.openFile("tabs.py");
  await workbench.ask("Edit it.");
  await until(async () => (await workbench.marked(INSERTED)) > 0, "lines that come are shown");
  await workbench.press("Control+End");
  await workbench.type("# typed");
  await picture("typing");
  await workbench.press("Escape"); // a list of words, if there is one
  await workbench.press("Escape");
  await until(async () => (await workbench.marked(INSERTED)) === 0, "nothing is shown any more");
  await saved("tabs", `${base}# typed`, "as it was, and what was typed");
});

claim("the panel of details shows the answer", async () => {
  await tell("script");
  await workbench.openFile("trace.py");
  await workbench.ask("Edit it.");
  await workbench.lenses.first().waitFor();
  await workbench.run("lookup-spec: Show Details of the Last Edit");
  const panel = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  await panel.locator(".answer", { hasText: "def add" }).waitFor();
  await picture("details");
  await workbench.press("Shift+Alt+Enter");
});

claim(
  "when the service is gone an edit says so and offers to start one, and the one that is started is used",
  async () => {
    await service.stop();
    await workbench.openFile("one-line.py");
    await workbench.ask("Edit it.");
    const toast = page.locator(".notification-toast", { hasText: "one-line.py is as it was." });
    await toast.waitFor();
    await workbench.telling("codicon-debug-disconnect");
    await picture("gone");
    await toast.getByRole("button", { name: "Start a Service" }).click();
    await workbench.telling("codicon-zap");
    await page.locator(".terminal-wrapper.active").waitFor();
    await slept(500);
    await picture("started");
    await workbench.focus();
    await workbench.ask("Edit it.");
    await workbench.lenses.first().waitFor();
    await workbench.press("Shift+Alt+Enter");
    await saved("one-line", recording("one-line").final, "as recorded");
    await workbench.run("lookup-spec: Stop the Service Started Here");
    await workbench.telling("codicon-debug-disconnect");
  },
);

const chosen = claims.filter(({ text }) => text.includes(words));
let failed = 0;
try {
  await workbench.telling("codicon-zap");
  for (const [n, { text, prove }] of chosen.entries()) {
    const began = Date.now();
    try {
      await prove();
      console.log(`ok   ${text} (${Date.now() - began} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${text}\n${error.stack}`);
      await picture(`failed-${n}`);
    }
    await workbench.press(CLEAR);
  }
} finally {
  await browser.close();
  await editor.stop();
  await service.stop();
}
console.log(failed === 0 ? `all ${chosen.length} claims hold` : `${failed} of ${chosen.length} claims do not hold`);
process.exit(failed === 0 ? 0 : 1);
