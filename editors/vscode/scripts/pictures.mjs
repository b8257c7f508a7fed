// Takes the pictures of README.md: VS Code, the extension and a real service.
//
// pictures.mjs PROGRAM   the program is `lookup-spec`
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import "./build.mjs";
import { launchBrowser, serveEditor, settle } from "./editor.mjs";
import { CODE, toRename } from "./example.mjs";
import { QUIET, slept, until, Workbench } from "./workbench.mjs";
import { startRealService } from "../test/service/real.mjs";

const PICTURES = "media/pictures";
/** Settings that leave the text and the extension. */
const PLAIN = {
  "window.commandCenter": false,
  "workbench.layoutControl.enabled": false,
  "workbench.activityBar.location": "hidden",
  "breadcrumbs.enabled": false,
  "editor.stickyScroll.enabled": false,
  "editor.occurrencesHighlight": "off",
};
const REMOVED = "diffEditor.removedLineBackground";

const folder = mkdtempSync(join(tmpdir(), "pictures-"));
writeFileSync(join(folder, "billing.py"), CODE);
mkdirSync(PICTURES, { recursive: true });

const service = await startRealService(process.argv[2]);
const editor = await serveEditor(folder);
const browser = await launchBrowser(mkdtempSync(join(tmpdir(), "profile-")), {
  headless: true,
  viewport: { width: 880, height: 520 },
  deviceScaleFactor: 1.5,
});
try {
  const page = browser.pages()[0] ?? (await browser.newPage());
  await settle(page, { ...QUIET, ...PLAIN, "lookupSpec.url": service.url });
  const workbench = await Workbench.open(page, editor.address);
  const take = async (name) => {
    await page.mouse.move(430, 300); // over nothing that tells about itself
    await page.screenshot({ path: `${PICTURES}/${name}.png` });
  };
  await workbench.telling("codicon-zap");
  await workbench.openFile("billing.py");
  await workbench.run("View: Close Primary Side Bar");

  await workbench.press("Control+End");
  await workbench.type("\n\ndef count(orders):\nret", 60);
  await workbench.ghost.first().waitFor();
  await slept(500);
  await take("completion");
  await workbench.press("Escape");
  await workbench.run("File: Revert File");
  await workbench.press("Control+Home");
  await slept(5_000); // the file is computed ahead

  await workbench.ask(toRename("gross"));
  await until(async () => (await workbench.marked(REMOVED)) >= 2, "two changes show");
  await take("preview");
  await workbench.lenses.first().waitFor();
  await slept(500);
  await take("review");

  await workbench.run("lookup-spec: Show Details of the Last Edit");
  await slept(3_000);
  await take("details");
} finally {
  await browser.close();
  editor.stop();
  await service.stop();
}
process.exit();
