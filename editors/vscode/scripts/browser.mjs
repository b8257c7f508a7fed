// Runs the tests of the extension inside VS Code, in a browser, against a scripted service.
//
// browser.mjs [WORDS]             only claims with these words in them
// browser.mjs --service PROGRAM   against a real service instead, which the program is
import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { runTests } from "@vscode/test-web";
import { build } from "esbuild";
import "./build.mjs";
import { editorOptions } from "./editor.mjs";
import { startRealService } from "../test/service/real.mjs";
import { RECORDINGS, writeBases } from "../test/service/recordings.mjs";
import { startService } from "../test/service/service.mjs";

const FOLDER = "build/browser/folder";

rmSync("build/browser", { recursive: true, force: true });
writeBases(FOLDER);

const [flag, program] = process.argv.slice(2);
const real = flag === "--service";
const service = real ? await startRealService(program) : await startService(RECORDINGS);
try {
  await build({
    entryPoints: [real ? "test/browser/real.ts" : "test/browser/index.ts"],
    outfile: "build/browser/index.js",
    bundle: true,
    external: ["vscode"],
    platform: "browser",
    format: "cjs",
    target: "es2022",
    sourcemap: "inline",
    logLevel: "warning",
    define: {
      SERVICE_URL: JSON.stringify(service.url),
      FIXTURES: JSON.stringify(RECORDINGS),
      ONLY: JSON.stringify(real ? "" : (flag ?? "")),
    },
  });
  await runTests({
    ...editorOptions(),
    browserType: "chromium",
    headless: true,
    extensionDevelopmentPath: resolve("."),
    extensionTestsPath: resolve("build/browser/index.js"),
    folderPath: resolve(FOLDER),
  });
} catch (error) {
  console.error(String(error));
  process.exitCode = 1;
} finally {
  await service.stop();
}
process.exit();
