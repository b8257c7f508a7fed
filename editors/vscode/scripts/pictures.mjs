// Takes the pictures of README.md: VS Code, the extension and a real service at its usual address.
//
// pictures.mjs PROGRAM   the program is `lookup-spec`
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { open } from "@vscode/test-web";
import "./build.mjs";
import { editorOptions, launchBrowser } from "./editor.mjs";
import { startRealService } from "../test/service/real.mjs";

const PICTURES = "media/pictures";
const PORT = 8012; // what the extension uses if nobody says otherwise
const EDITOR_PORT = 3111;
const CODE = `from decimal import Decimal


def invoice(items, rate):
    total = Decimal(0)
    for item in items:
        total += item.price * item.quantity
    return total * (1 + rate)


def summary(orders, rate):
    rows = []
    for order in orders:
        rows.append((order.customer, invoice(order.items, rate)))
    rows.sort(key=lambda row: row[1], reverse=True)
    return rows


def report(orders, rate):
    for customer, amount in summary(orders, rate):
        print(f"{customer}: {amount}")
    print("all:", sum(invoice(order.items, rate) for order in orders))
`;
const INSTRUCTION = "Rename the function invoice to gross everywhere.";

const folder = mkdtempSync(join(tmpdir(), "pictures-"));
writeFileSync(join(folder, "billing.py"), CODE);
mkdirSync(PICTURES, { recursive: true });

const service = await startRealService(process.argv[2], PORT);
const editor = await open({
  ...editorOptions(),
  browserType: "none",
  port: EDITOR_PORT,
  extensionDevelopmentPath: resolve("."),
  folderPath: folder,
});
const browser = await launchBrowser(mkdtempSync(join(tmpdir(), "profile-")), {
  headless: true,
  viewport: { width: 1000, height: 620 },
  deviceScaleFactor: 1.5,
});
try {
  const page = browser.pages()[0] ?? (await browser.newPage());
  await page.goto(`http://localhost:${EDITOR_PORT}`);
  const picture = (name, clip) => page.screenshot({ path: `${PICTURES}/${name}.png`, ...(clip && { clip }) });
  const run = async (command) => {
    await page.keyboard.press("F1");
    await page.keyboard.type(command, { delay: 10 });
    await page.waitForTimeout(500);
    await page.keyboard.press("Enter");
  };
  await page.waitForSelector(".monaco-workbench");
  await page.waitForSelector('.statusbar-item:has-text("lookup-spec"), .statusbar-item[id*="lookupSpec"]', {
    timeout: 60_000,
  });
  const code = page.locator(".view-lines .view-line", { hasText: "Decimal" }).first();
  for (let n = 0; n < 20 && !(await code.isVisible()); n += 1) {
    await page.keyboard.press("Escape"); // files are found only once the editor has looked for them
    await page.keyboard.press("Control+P");
    await page.keyboard.type("billing.py", { delay: 20 });
    await page.waitForTimeout(2_000);
    await page.keyboard.press("Enter");
    await page.waitForTimeout(2_000);
  }
  await run("View: Close Primary Side Bar");
  await page.waitForTimeout(3_000);
  await page.click(".view-lines");
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("Control+Alt+Enter");
  await page.waitForSelector(".quick-input-widget");
  await page.keyboard.type(INSTRUCTION, { delay: 10 });
  await page.waitForTimeout(300);
  await picture("asking");
  await page.keyboard.press("Enter");
  const added = page.locator(".codelens-decoration", { hasText: "Keep" }).first();
  for (let n = 0; n < 200 && !(await added.isVisible()); n += 1) {
    await picture("streaming");
    await page.waitForTimeout(30);
    if ((await page.locator(".view-overlays .cdr").count()) > 12) {
      break;
    }
  }
  await added.waitFor({ timeout: 120_000 });
  await page.waitForTimeout(500);
  await picture("applied");
  await run("lookup-spec: Show Details");
  await page.waitForTimeout(3_000);
  await picture("details");
} finally {
  await browser.close();
  editor.dispose();
  await service.stop();
}
process.exit();
