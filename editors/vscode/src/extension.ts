// gyre beside the editor: one terminal for each folder of the workspace, whose prompt gets the
// selection as `path:line-line`.
import * as vscode from "vscode";
import { describeSelection } from "./reference.ts";

/** Brackets what is pasted, so that the prompt takes it as text and not as keys. */
const PASTE_BEGIN = "\u001B[200~";
const PASTE_END = "\u001B[201~";

/** Terminals that run gyre, by the folder that they work in. */
const terminals = new Map<string, vscode.Terminal>();

export function activate(context: vscode.ExtensionContext): void {
  context.subscriptions.push(
    vscode.commands.registerCommand("gyre.open", () => open(findSelection())),
    vscode.commands.registerCommand("gyre.addSelection", addSelection),
    vscode.window.onDidCloseTerminal((closed) => {
      for (const [folder, terminal] of terminals) {
        if (terminal === closed) terminals.delete(folder);
      }
    }),
  );
}

export function deactivate(): void {
  terminals.clear();
}

function addSelection(): void {
  const reference = findSelection();
  const terminal = terminals.get(findFolder() ?? "");
  if (reference === "" || !terminal || terminal.exitStatus) return open(reference);
  terminal.show();
  terminal.sendText(PASTE_BEGIN + reference + PASTE_END, false);
}

/** Shows the terminal of the folder, or opens one whose prompt begins with the text. */
function open(draft: string): void {
  const cwd = findFolder();
  if (cwd === undefined) {
    void vscode.window.showErrorMessage("gyre works in a folder: open one first.");
    return;
  }
  const known = terminals.get(cwd);
  if (known && !known.exitStatus) return known.show();
  const settings = vscode.workspace.getConfiguration("gyre");
  const terminal = vscode.window.createTerminal({
    name: "gyre",
    cwd,
    shellPath: settings.get("command", "gyre"),
    shellArgs: [
      ...settings.get<string[]>("arguments", []),
      ...(draft === "" ? [] : ["--draft", draft]),
    ],
    location: { viewColumn: vscode.ViewColumn.Beside },
  });
  terminals.set(cwd, terminal);
  terminal.show();
}

/** The folder of the workspace that the file in the editor is in, or the first one. */
function findFolder(): string | undefined {
  const document = vscode.window.activeTextEditor?.document;
  const folder = document && vscode.workspace.getWorkspaceFolder(document.uri);
  return (folder ?? vscode.workspace.workspaceFolders?.[0])?.uri.fsPath;
}

function findSelection(): string {
  const editor = vscode.window.activeTextEditor;
  const cwd = findFolder();
  if (!editor || cwd === undefined || editor.document.uri.scheme !== "file") return "";
  return describeSelection(editor.document.uri.fsPath, cwd, editor.selection);
}
