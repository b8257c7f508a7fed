/** A service on this machine, in a terminal where the user sees what it says. */

import * as vscode from "vscode";
import type { Service } from "./service";
import { settings } from "./settings";

const NAME = "lookup-spec service";
const LOOK = 2_000; // milliseconds between two looks whether it is up

export class LocalService implements vscode.Disposable {
  private terminal: vscode.Terminal | undefined;
  private timer: ReturnType<typeof setInterval> | undefined;
  private readonly registration: vscode.Disposable;

  constructor(private readonly service: Service) {
    this.terminal = vscode.window.terminals.find(({ name }) => name === NAME);
    this.registration = vscode.window.onDidCloseTerminal((closed) => {
      if (closed === this.terminal) {
        this.terminal = undefined;
        clearInterval(this.timer);
        void this.service.check();
        this.timer = setTimeout(() => void this.service.check(), LOOK); // its last breath may have been an answer
      }
    });
  }

  /** Whether programs can be started where the extension runs; a browser cannot. */
  static get possible(): boolean {
    return !("importScripts" in globalThis);
  }

  get running(): boolean {
    return this.terminal !== undefined;
  }

  start(): void {
    if (this.terminal !== undefined) {
      this.terminal.show(true);
      return;
    }
    const { serviceCommand, url } = settings();
    const [program, ...args] = serviceCommand;
    if (program === undefined) {
      void vscode.window.showErrorMessage("The setting lookupSpec.serviceCommand is empty; it says what to start.");
      return;
    }
    const { hostname, port } = new URL(url);
    if (!["127.0.0.1", "localhost", "[::1]"].includes(hostname)) {
      void vscode.window.showErrorMessage(`The setting lookupSpec.url is ${url}, which is not this machine.`);
      return;
    }
    this.terminal = vscode.window.createTerminal({
      name: NAME,
      shellPath: program,
      shellArgs: [...args, "--port", port === "" ? "80" : port],
      iconPath: new vscode.ThemeIcon("zap"),
      isTransient: true,
    });
    this.terminal.show(true);
    this.timer = setInterval(() => {
      if (this.service.online) {
        clearInterval(this.timer);
      } else {
        void this.service.check();
      }
    }, LOOK);
  }

  stop(): void {
    this.terminal?.dispose();
  }

  dispose(): void {
    clearInterval(this.timer);
    this.registration.dispose();
  }
}
