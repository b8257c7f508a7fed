/** The recordings that all clients are held to. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { EditEvent, EditRequest } from "../../src/core/protocol";

export interface Fixture {
  readonly request: EditRequest;
  readonly base: string;
  readonly events: readonly EditEvent[];
  readonly final: string;
}

const FOLDER = join(import.meta.dirname, "../../../fixtures");

export const FIXTURES: readonly (readonly [string, Fixture])[] = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".json"))
  .map((name) => [name.replace(/\.json$/, ""), JSON.parse(readFileSync(join(FOLDER, name), "utf-8")) as Fixture]);

export function streamOf(events: readonly unknown[]): string {
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
}
