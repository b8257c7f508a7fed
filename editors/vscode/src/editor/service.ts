/** The service as the extension sees it: where it is, with which key, and whether it is there. */

import * as vscode from "vscode";
import { Client } from "../core/client";
import { Connection, LAPSE } from "../core/connection";
import type { ConnectionState } from "../core/connection";
import { Failure } from "../core/failure";
import { SECTION, settings } from "./settings";

const KEY = "apiKey";

export class Service implements vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<ConnectionState>();
  readonly onDidChange = this.changes.event;
  private readonly connection: Connection;
  private readonly disposables: vscode.Disposable[] = [this.changes];
  private key: string | undefined;
  private busyUntil = 0;
  private coldUntil = 0;
  private suspected = 0;

  constructor(
    private readonly secrets: vscode.SecretStorage,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.connection = new Connection(
      () => this.probed(),
      (state) => {
        this.told(state);
      },
      (seconds, run) => {
        const timer = setTimeout(run, seconds * 1000);
        return () => {
          clearTimeout(timer);
        };
      },
    );
    this.disposables.push(
      secrets.onDidChange((event) => {
        if (event.key === KEY) {
          void this.start();
        }
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(`${SECTION}.url`)) {
          void this.start();
        }
      }),
    );
  }

  /** Reads the key and asks whether the service is there. */
  async start(): Promise<void> {
    this.key = await this.secrets.get(KEY);
    await this.check();
  }

  get client(): Client {
    return new Client({ url: settings().url, key: this.key });
  }

  get state(): ConnectionState {
    return this.connection.state;
  }

  get online(): boolean {
    return this.connection.online;
  }

  /** Why there are no completions, though the service is there. */
  get withoutCompletion(): string | undefined {
    return this.connection.withoutCompletion;
  }

  /** Whether to ask for what nobody has asked for: completions, next edits, computing ahead. */
  get willing(): boolean {
    return this.online && Date.now() >= this.busyUntil;
  }

  /** Whether to have documents computed ahead. */
  get warms(): boolean {
    return this.willing && Date.now() >= this.coldUntil;
  }

  /** A request failed. Nobody is told here but the status item. */
  noticed(failure: Failure): void {
    this.log.warn(`${failure.kind}: ${failure.message}`);
    switch (failure.kind) {
      case "busy":
        this.busyUntil = Date.now() + 1000 * failure.retryAfter;
        break;
      case "unsupported":
      case "refused":
        break;
      default:
        this.connection.failed(failure);
    }
  }

  /** Computing ahead failed. Nobody asked for it, so a server that does not know it may still be one that completes. */
  didNotWarm(failure: Failure): void {
    if (failure.kind === "odd") {
      this.log.warn(`No documents are computed ahead: ${failure.message}`);
      this.coldUntil = Date.now() + 1000 * LAPSE;
    } else {
      this.noticed(failure);
    }
  }

  /** The model cannot complete. */
  lacksCompletion(why: string): void {
    this.log.warn(`No completions: ${why}`);
    this.connection.lacksCompletion(why);
  }

  /** A request was given up after it had waited suspiciously long. */
  suspect(): void {
    if (Date.now() - this.suspected > 10_000) {
      this.suspected = Date.now();
      void this.connection.check();
    }
  }

  /** Asks again, at the user's wish, and takes nothing for granted that was found out before. */
  async check(): Promise<void> {
    this.busyUntil = this.coldUntil = 0;
    await this.connection.check();
  }

  async setKey(key: string): Promise<void> {
    await (key === "" ? this.secrets.delete(KEY) : this.secrets.store(KEY, key));
  }

  dispose(): void {
    this.connection.close();
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private async probed(): Promise<string | Failure> {
    try {
      return await this.client.probe(new AbortController().signal);
    } catch (error) {
      if (error instanceof Failure) {
        return error;
      }
      return new Failure("odd", `The address ${settings().url} cannot be used: ${String(error)}`);
    }
  }

  private told(state: ConnectionState): void {
    if (state.kind === "online") {
      this.log.info(`${state.model} at ${settings().url}`);
    } else if (state.kind === "away") {
      this.log.warn(state.failure.message);
    }
    this.changes.fire(state);
  }
}
