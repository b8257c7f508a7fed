// One bundle serves desktop and web: the extension uses nothing that only one of them has.
import { rmSync } from "node:fs";
import { build } from "esbuild";

rmSync("dist/extension.js", { force: true });
await build({
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  bundle: true,
  external: ["vscode"],
  platform: "neutral",
  format: "cjs",
  target: "es2022",
  minify: process.argv.includes("--minify"),
  sourcemap: process.argv.includes("--minify") ? false : "inline",
  logLevel: "warning",
});
