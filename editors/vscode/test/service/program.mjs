// The scripted service as a program, as the extension starts one: program.mjs --port PORT
import { RECORDINGS } from "./recordings.mjs";
import { startService } from "./service.mjs";

const [, port] = process.argv.slice(2);
const { url } = await startService(RECORDINGS, Number(port));
console.log(`a scripted service at ${url}`);
