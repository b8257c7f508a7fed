/** Wires the parts together. What they do is in `editor/`, what they go by in `core/`. */

import * as vscode from "vscode";
import { codeIn } from "./core/clipboard";
import type { EditRequest } from "./core/protocol";
import { Completions } from "./editor/completions";
import { Details } from "./editor/details";
import { bodyOf, nameOf, rangeOf } from "./editor/documents";
import { Instructions } from "./editor/instruction";
import { LocalService } from "./editor/local-service";
import { NextEdit } from "./editor/next-edit";
import { Originals } from "./editor/original";
import { Service } from "./editor/service";
import { Sessions } from "./editor/sessions";
import { settings } from "./editor/settings";
import { Status } from "./editor/status";
import { Surroundings } from "./editor/surroundings";
import { Warming } from "./editor/warming";

/** What other extensions, and tests, may see. */
export interface Api {
  readonly service: Service;
  readonly sessions: Sessions;
  readonly nextEdit: NextEdit;
  readonly status: Status;
}

/** For key bindings that always ask for the same. */
interface EditArguments {
  readonly instruction: string;
}

/** For chats and other extensions that have the code. */
interface ApplyArguments {
  readonly code: string;
}

export function activate(context: vscode.ExtensionContext): Api {
  const log = vscode.window.createOutputChannel("lookup-spec", { log: true });
  const service = new Service(context.secrets, log);
  const sessions = new Sessions(service, LocalService.possible);
  const isBusy = (document: vscode.TextDocument): boolean => sessions.of(document) !== undefined;
  const warming = new Warming(service, isBusy);
  const nextEdit = new NextEdit(service, isBusy);
  const surroundings = new Surroundings();
  const completions = new Completions(service, surroundings, isBusy);
  const instructions = new Instructions(context.globalState);
  const local = new LocalService(service);
  const originals = new Originals(sessions);
  const details = new Details(sessions);
  const status = new Status(service, sessions.onDidChange);
  context.subscriptions.push(log, service, sessions, warming, nextEdit, surroundings, completions, local, originals);
  context.subscriptions.push(details, status);

  const request = (
    editor: vscode.TextEditor,
    asked: Pick<EditRequest, "mode" | "instruction" | "update">,
  ): EditRequest => {
    const range = rangeOf(editor.selection);
    return {
      document: bodyOf(editor.document),
      ...asked,
      ...(range && { range }),
      options: { granularity: "line", speculation: settings().speculation, trace: true },
    };
  };

  const edit = async (editor: vscode.TextEditor, given?: EditArguments): Promise<void> => {
    const { document, selection } = editor;
    const where = selection.isEmpty ? nameOf(document) : `${lines(selection)} of ${nameOf(document)}`;
    const instruction = given?.instruction ?? (await instructions.ask(where, () => void warming.warm(document)));
    if (instruction === undefined) {
      return;
    }
    warming.end();
    nextEdit.dismiss();
    await sessions.start(document, () => request(editor, { mode: "edit", instruction }));
  };

  const apply = async (editor: vscode.TextEditor, given?: ApplyArguments): Promise<void> => {
    const text = given?.code ?? (await vscode.env.clipboard.readText());
    const update = codeIn(text, editor.document.languageId === "markdown");
    if (update === "") {
      void vscode.window.showInformationMessage("There is no text in the clipboard. Copy a code block first.");
      return;
    }
    nextEdit.dismiss();
    await sessions.start(editor.document, () => request(editor, { mode: "apply", update }));
  };

  const setKey = async (): Promise<void> => {
    const prompt = "The key that the service was started with. Empty forgets it.";
    const key = await vscode.window.showInputBox({ title: "API key for lookup-spec", prompt, password: true });
    if (key !== undefined) {
      await service.setKey(key.trim());
    }
  };

  const command = (name: string, run: (argument?: unknown) => unknown): void => {
    context.subscriptions.push(vscode.commands.registerCommand(`lookupSpec.${name}`, run));
  };
  const inEditor = (name: string, run: (editor: vscode.TextEditor, argument?: unknown) => unknown): void => {
    command(name, (argument?: unknown) => {
      const editor = vscode.window.activeTextEditor;
      if (editor === undefined) {
        void vscode.window.showInformationMessage("Open a file first.");
        return undefined;
      }
      return run(editor, argument);
    });
  };
  /** @param which the hunks meant: by number, at the cursor, or all. */
  const decide = (name: "accept" | "reject", all: boolean): void => {
    inEditor(all ? `${name}All` : name, async (editor, id?: unknown) => {
      const session = sessions.of(editor.document);
      const one = typeof id === "number" ? session?.open.find((hunk) => hunk.id === id) : sessions.at(editor);
      const hunks = all ? (session?.open ?? []) : one === undefined ? [] : [one];
      if (session !== undefined && session.phase !== "streaming") {
        await sessions[name](session, hunks);
      }
    });
  };

  inEditor("edit", (editor, given?: unknown) => edit(editor, has(given, "instruction") ? given : undefined));
  inEditor("apply", (editor, given) => apply(editor, has(given, "code") ? given : undefined));
  inEditor("stop", (editor) => sessions.of(editor.document)?.end());
  decide("accept", false);
  decide("reject", false);
  decide("accept", true);
  decide("reject", true);
  inEditor("next", (editor) => {
    sessions.go(editor, 1);
  });
  inEditor("previous", (editor) => {
    sessions.go(editor, -1);
  });
  inEditor("compare", (editor) => originals.compare(editor.document));
  inEditor("seekNextEdit", (editor) => nextEdit.seek(editor.document));
  command("acceptNextEdit", () => nextEdit.accept());
  command("dismissNextEdit", () => {
    nextEdit.dismiss();
  });
  command("details", () => {
    details.show();
  });
  command("setKey", setKey);
  command("check", () => service.check());
  command("startService", () => {
    local.start();
  });
  command("stopService", () => {
    local.stop();
  });
  command("showLog", () => {
    log.show();
  });
  command("menu", () => menu(service, local, sessions));
  void vscode.commands.executeCommand("setContext", "lookupSpec.canStart", LocalService.possible);
  void service.start();
  return { service, sessions, nextEdit, status };
}

interface Choice extends vscode.QuickPickItem {
  readonly command?: string;
  readonly argument?: unknown;
}

async function menu(service: Service, local: LocalService, sessions: Sessions): Promise<void> {
  const choices: Choice[] = [
    { label: "$(edit) Edit with an instruction…", command: "lookupSpec.edit" },
    { label: "$(clippy) Apply code from the clipboard", command: "lookupSpec.apply" },
  ];
  if (sessions.last !== undefined) {
    choices.push({ label: "$(graph) Details of the last edit", command: "lookupSpec.details" });
  }
  choices.push({ label: "", kind: vscode.QuickPickItemKind.Separator });
  if (!service.online) {
    choices.push({ label: "$(refresh) Look for the service now", command: "lookupSpec.check" });
  }
  if (LocalService.possible) {
    choices.push(
      local.running
        ? { label: "$(debug-stop) Stop the service started here", command: "lookupSpec.stopService" }
        : { label: "$(play) Start a service on this machine", command: "lookupSpec.startService" },
    );
  }
  const ours = "@ext:lookup-spec.lookup-spec";
  choices.push(
    { label: "$(key) Set the API key…", command: "lookupSpec.setKey" },
    { label: "$(gear) Settings", command: "workbench.action.openSettings", argument: ours },
    { label: "$(output) Log", command: "lookupSpec.showLog" },
  );
  const { state } = service;
  const title = state.kind === "online" ? state.model : state.kind === "away" ? state.failure.message : "Connecting…";
  const choice = await vscode.window.showQuickPick(choices, { title: "lookup-spec", placeHolder: title });
  if (choice?.command !== undefined) {
    await vscode.commands.executeCommand(choice.command, choice.argument);
  }
}

function lines({ start, end }: vscode.Range): string {
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  return last === start.line ? `line ${start.line + 1}` : `lines ${start.line + 1} to ${last + 1}`;
}

function has<Name extends string>(value: unknown, name: Name): value is Record<Name, string> {
  return typeof value === "object" && value !== null && typeof (value as Record<string, unknown>)[name] === "string";
}
