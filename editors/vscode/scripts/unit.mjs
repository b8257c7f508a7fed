// Bundles the unit tests and runs them with node's own runner.
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const tests = readdirSync("test/unit").filter((name) => name.endsWith(".test.ts"));
rmSync("build/unit", { recursive: true, force: true });
await build({
  entryPoints: tests.map((name) => `test/unit/${name}`),
  outdir: "build/unit/tests",
  outExtension: { ".js": ".mjs" },
  bundle: true,
  packages: "external",
  platform: "node",
  format: "esm",
  target: "node20",
  sourcemap: "inline",
  logLevel: "warning",
  // The tests find the recordings from where their sources are.
  define: { "import.meta.dirname": JSON.stringify(`${process.cwd()}/test/unit`) },
});
const files = tests.map((name) => `build/unit/tests/${name.replace(/\.ts$/, ".mjs")}`);
const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...process.argv.slice(2), ...files], {
  stdio: "inherit",
});
process.exit(status ?? 1);
