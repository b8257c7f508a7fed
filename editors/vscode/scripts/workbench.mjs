// VS Code's page, driven as a person drives it: by keys and clicks, seeing what is on the screen.
import { countMarked } from "./in-page.mjs";

const PATIENCE = 120_000; // milliseconds: a model may run on one busy core
const LOOK = 50; // milliseconds between two looks

/** Settings that keep the page to what it is about. */
export const QUIET = {
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "chat.disableAIFeatures": true,
  "security.workspace.trust.enabled": false,
  "extensions.ignoreRecommendations": true,
  "update.mode": "none",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "telemetry.telemetryLevel": "off",
  "editor.minimap.enabled": false,
  "editor.cursorBlinking": "solid",
  "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" }, // its list takes Tab first
};

export class Workbench {
  constructor(page) {
    this.page = page;
    this.lenses = page.locator(".codelens-decoration");
    this.status = page.locator('.statusbar-item[id*="lookupSpec"]');
    this.ghost = page.locator('[class*="ghost-text"]');
  }

  /** Opens the page and waits for the extension. */
  static async open(page, address) {
    await page.goto(address);
    await page.waitForSelector(".monaco-workbench");
    const workbench = new Workbench(page);
    await workbench.status.waitFor({ timeout: PATIENCE });
    return workbench;
  }

  async press(...keys) {
    for (const key of keys) {
      await this.page.keyboard.press(key);
    }
  }

  async type(text, delay = 10) {
    await this.page.keyboard.type(text, { delay });
  }

  /** Runs a command by its title. */
  async run(title) {
    await this.press("F1");
    await this.page.locator(".quick-input-box input").waitFor();
    await this.type(title);
    await this.row(title).waitFor();
    await this.press("Enter");
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }

  /** Opens a file that the side bar shows, with the cursor at its start. */
  async openFile(name) {
    await this.page.locator(".explorer-folders-view").getByText(name, { exact: true }).dblclick();
    await this.page.locator(".tab.active", { hasText: name }).waitFor();
    await this.focus();
    await this.press("Control+Home");
  }

  /** Puts the keyboard into the text. */
  async focus() {
    await this.press("Control+1");
    await this.page.locator(".editor-instance .monaco-editor.focused").waitFor();
  }

  /** Asks for an edit of the selection or the file. */
  async ask(instruction) {
    await this.press("Control+Alt+Enter");
    await this.page.locator(".quick-input-widget", { hasText: "Edit " }).waitFor();
    await this.type(instruction);
    await this.row(instruction).waitFor();
    await this.press("Enter");
  }

  /** What the status item says: its icons by their names, then its text. */
  async told() {
    const icons = await this.status.locator(".codicon").evaluateAll((all) => all.map(({ className }) => className));
    const names = icons.join(" ").match(/codicon-[a-z-]+/g) ?? [];
    return [...names, (await this.status.innerText()).trim()].join(" ");
  }

  /** Waits until the status item says so. */
  async telling(words) {
    await until(async () => (await this.told()).includes(words), `the status item says ${words}`);
  }

  /** The lines on the screen, as they are drawn. */
  async lines() {
    const drawn = await this.page
      .locator(".editor-instance .view-line")
      .evaluateAll((all) =>
        all
          .map((line) => ({ top: line.getBoundingClientRect().top, text: line.textContent ?? "" }))
          .sort((one, other) => one.top - other.top),
      );
    return drawn.map(({ text }) => text.replaceAll("\u00a0", " "));
  }

  /** How many lines on the screen are marked with one of the theme's colours. */
  marked(color) {
    return this.page.evaluate(countMarked, color);
  }

  row(text) {
    return this.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first();
  }
}

/** Waits until something is true; `what` says what. */
export async function until(true_, what, patience = PATIENCE) {
  for (const end = Date.now() + patience; !(await true_()); await slept(LOOK)) {
    if (Date.now() > end) {
      throw new Error(`waited in vain: ${what}`);
    }
  }
}

export function slept(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
