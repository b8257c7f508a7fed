/** Tests without a framework: claims, run one after the other. */

import * as vscode from "vscode";
import type { Api } from "../../src/extension";

declare const SERVICE_URL: string;
declare const ONLY: string;

interface Claim {
  readonly text: string;
  readonly prove: () => Promise<void>;
}

const claims: Claim[] = [];

export function test(text: string, prove: () => Promise<void>): void {
  claims.push({ text, prove });
}

/** @param before what each claim begins with. */
export async function runAll(before: () => Promise<void>): Promise<void> {
  const failed: string[] = [];
  for (const { text, prove } of claims.filter((claim) => claim.text.includes(ONLY))) {
    const began = Date.now();
    try {
      await before();
      await prove();
      console.log(`ok   ${text} (${Date.now() - began} ms)`);
    } catch (error) {
      console.log(`FAIL ${text}\n${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      failed.push(text);
    }
    await vscode.commands.executeCommand("workbench.action.revertAndCloseActiveEditor");
    await vscode.commands.executeCommand("workbench.action.closeAllEditors");
    await vscode.commands.executeCommand("notifications.clearAll");
  }
  if (failed.length > 0) {
    throw new Error(`${failed.length} of ${claims.length} claims do not hold:\n${failed.join("\n")}`);
  }
  console.log(`all ${claims.length} claims hold`);
}

export function equal(actual: unknown, expected: unknown, what = ""): void {
  const [one, other] = [shown(actual), shown(expected)];
  if (one !== other) {
    throw new Error(`${what}: is ${one.slice(0, 2_000)}, should be ${other.slice(0, 2_000)}`);
  }
}

function shown(value: unknown): string {
  return value === undefined ? "undefined" : JSON.stringify(value);
}

export async function until(true_: () => boolean | Promise<boolean>, what: string, seconds = 10): Promise<void> {
  const end = Date.now() + seconds * 1000;
  while (!(await true_())) {
    if (Date.now() > end) {
      throw new Error(`waited in vain: ${what}`);
    }
    await pause(10);
  }
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

export async function api(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>("lookup-spec.lookup-spec");
  if (extension === undefined) {
    throw new Error("the extension is not there");
  }
  return extension.activate();
}

/** Starts over with the service, which from now on behaves so. */
export async function script(parts: object): Promise<void> {
  await fetch(`${SERVICE_URL}/script`, { method: "POST", body: JSON.stringify(parts) });
}

export async function go(): Promise<void> {
  await fetch(`${SERVICE_URL}/go`, { method: "POST" });
}

export interface Asked {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly at: number;
  readonly ended?: "whole" | "cut";
}

export async function asked(path: string): Promise<Asked[]> {
  const all = (await (await fetch(`${SERVICE_URL}/log`)).json()) as Asked[];
  return all.filter((entry) => entry.path === path);
}

export async function connected(): Promise<void> {
  const { service } = await api();
  const configuration = vscode.workspace.getConfiguration("lookupSpec");
  if (configuration.get("url") !== SERVICE_URL) {
    await configuration.update("url", SERVICE_URL, vscode.ConfigurationTarget.Global);
  }
  await service.check();
  await until(() => service.online, "the service is there");
}
