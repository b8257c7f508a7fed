// Where the browser is that tests and pictures run in.
import { existsSync } from "node:fs";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export function chromiumPath() {
  const found = [process.env.CHROMIUM, ...PLACES].find((path) => path && existsSync(path));
  if (!found) {
    throw new Error("There is no Chromium; install one (apt-get install chromium) or name it in CHROMIUM.");
  }
  return found;
}
