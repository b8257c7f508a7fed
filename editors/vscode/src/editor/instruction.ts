/** Asks what is to be changed. Earlier instructions are a key press away. */

import * as vscode from "vscode";

const STORED = "instructions";
const KEPT = 50;

export class Instructions {
  constructor(private readonly memory: vscode.Memento) {}

  get earlier(): readonly string[] {
    return this.memory.get<string[]>(STORED, []);
  }

  /**
   * Asks for an instruction.
   *
   * @param where what it is about, in words.
   * @param opened called when the question is on the screen.
   * @returns nothing if the user thinks better of it.
   */
  async ask(where: string, opened: () => void): Promise<string | undefined> {
    const box = vscode.window.createQuickPick();
    box.title = `Edit ${where}`;
    box.placeholder = "What should change? For example: make this async";
    const fill = (): void => {
      const typed = box.value.trim();
      const own = typed === "" ? [] : [{ label: typed, description: "Enter starts", alwaysShow: true }];
      const others = this.earlier.filter((label) => label !== typed);
      const matching = others.filter((label) => label.toLowerCase().includes(typed.toLowerCase()));
      box.items = [...own, ...matching.map((label) => ({ label, iconPath: new vscode.ThemeIcon("history") }))];
    };
    fill();
    const answer = new Promise<string | undefined>((resolve) => {
      box.onDidChangeValue(fill);
      box.onDidAccept(() => {
        resolve(box.activeItems[0]?.label ?? (box.value.trim() || undefined));
        box.hide();
      });
      box.onDidHide(() => {
        resolve(undefined);
      });
    });
    box.show();
    opened();
    const instruction = await answer;
    box.dispose();
    if (instruction !== undefined) {
      const rest = this.earlier.filter((other) => other !== instruction);
      await this.memory.update(STORED, [instruction, ...rest].slice(0, KEPT));
    }
    return instruction;
  }
}
