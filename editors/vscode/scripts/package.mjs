// Packs the extension into dist/lookup-spec.vsix.
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { createVSIX } from "@vscode/vsce";

mkdirSync("dist", { recursive: true });
copyFileSync("../../LICENSE", "LICENSE"); // it lies in the repository's root only
try {
  await createVSIX({
    packagePath: "dist/lookup-spec.vsix",
    dependencies: false,
    allowMissingRepository: true,
    rewriteRelativeLinks: false, // there is no address yet that they could be rewritten to
  });
} finally {
  rmSync("LICENSE");
}
