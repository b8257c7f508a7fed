// The real service with the smallest embedded model.
import { spawn } from "node:child_process";
import { freePort } from "./port.mjs";

const MODEL = "qwen2.5-coder-0.5b-instruct";
const PATIENCE = 300_000; // milliseconds: the model may have to be converted first

/** @param program the command `lookup-spec`. */
export async function startRealService(program) {
  const port = await freePort();
  const options = ["serve", "--model", MODEL, "--port", `${port}`, "--cors-origin", "*"];
  const child = spawn(program, options, { stdio: ["ignore", "inherit", "inherit"] });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const url = `http://127.0.0.1:${port}`;
  for (const end = Date.now() + PATIENCE; ; await new Promise((resolve) => setTimeout(resolve, 500))) {
    if (child.exitCode !== null || Date.now() > end) {
      child.kill();
      throw new Error(`${program} ${options.join(" ")} did not come up.`);
    }
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    if (answer?.ok) {
      break;
    }
  }
  return {
    url,
    stop: async () => {
      child.kill();
      await exited;
    },
  };
}
