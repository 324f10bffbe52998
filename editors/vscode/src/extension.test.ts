import { createRequire } from "node:module";
import { join } from "node:path";
import { compileFunction } from "node:vm";
import { strFromU8, unzipSync } from "fflate";
import { beforeAll, describe, expect, it } from "vitest";
import type * as vscode from "vscode";
import { buildVsix } from "../../../scripts/release/vsix.mjs";

// What is in the packed extension is run against a copy of the editor's interface, which has the editor's types.

const FOLDER = "/home/ada/app";
const nodeRequire = createRequire(import.meta.url);
let files: Record<string, string>;

beforeAll(async () => {
  const unzipped = unzipSync(await buildVsix());
  files = Object.fromEntries(
    Object.entries(unzipped).map(([path, bytes]) => [path, strFromU8(bytes)]),
  );
});

interface Terminal {
  options: vscode.TerminalOptions;
  sent: string[];
  shown: number;
  close(): void;
}

interface EditorWorld {
  file?: string;
  /** First and last line, and the column where it ends. */
  selected?: [number, number, number];
  folder?: string | undefined;
  settings?: Record<string, unknown>;
}

type Extension = Record<"activate" | "deactivate", (context?: unknown) => void>;

/** The editor with the extension in it. */
function openEditor({ file, selected, folder = FOLDER, settings = {} }: EditorWorld) {
  const commands = new Map<string, () => void>();
  const terminals: Terminal[] = [];
  const errors: string[] = [];
  const closings: ((terminal: vscode.Terminal) => void)[] = [];
  const uri = { scheme: "file", fsPath: file === undefined ? "" : join(FOLDER, file) };
  const [first, last, column] = selected ?? [0, 0, 0];
  const folders = folder === "" ? undefined : [{ uri: { fsPath: folder } }];
  const window = {
    activeTextEditor: file && {
      document: { uri },
      selection: {
        isEmpty: selected === undefined,
        start: { line: first, character: 0 },
        end: { line: last, character: column },
      },
    },
    onDidCloseTerminal: (listener: (terminal: vscode.Terminal) => void) => closings.push(listener),
    showErrorMessage: async (text: string) => void errors.push(text),
    createTerminal(options: vscode.TerminalOptions) {
      const terminal: Pick<vscode.Terminal, "show" | "sendText" | "exitStatus"> = {
        exitStatus: undefined,
        show: () => void made.shown++,
        sendText: (text, shouldExecute) => made.sent.push(`${text}${shouldExecute ? "\n" : ""}`),
      };
      const close = (): void => {
        for (const listener of closings) listener(terminal as vscode.Terminal);
      };
      const made: Terminal = { options, sent: [], shown: 0, close };
      terminals.push(made);
      return terminal;
    },
  };
  const api = {
    window,
    ViewColumn: { Beside: -2 },
    commands: {
      registerCommand: (name: string, run: () => void) => commands.set(name, run),
    },
    workspace: {
      workspaceFolders: folders,
      getWorkspaceFolder: () => folders?.[0],
      getConfiguration: (section: string) => ({
        get: (name: string, usual: unknown) => settings[`${section}.${name}`] ?? usual,
      }),
    },
  };
  const module: { exports: Extension } = { exports: { activate() {}, deactivate() {} } };
  const load = compileFunction(files["extension/extension.cjs"] ?? "", [
    "require",
    "module",
    "exports",
  ]);
  const requireModule = (name: string): unknown => (name === "vscode" ? api : nodeRequire(name));
  load(requireModule, module, module.exports);
  const subscriptions: unknown[] = [];
  module.exports.activate({ subscriptions });
  const run = (name: string): void => commands.get(name)?.();
  return { run, terminals, errors, commands, subscriptions, window };
}

describe("the extension for VS Code", () => {
  it("has the commands that its manifest names, and says what it is", () => {
    const manifest = JSON.parse(files["extension/package.json"] ?? "");
    const named = manifest.contributes.commands.map((each: { command: string }) => each.command);
    const { commands, subscriptions } = openEditor({});
    expect([...commands.keys()]).toEqual(named);
    expect(subscriptions).toHaveLength(3);
    expect(files["extension.vsixmanifest"]).toContain(`Version="${manifest.version}"`);
    expect(files["extension.vsixmanifest"]).toContain(manifest.description);
    expect(Object.keys(files)).toContain("[Content_Types].xml");
    expect(manifest.main).toBe("./extension.cjs");
  });

  it("opens gyre beside the editor, with the selected lines in its prompt", () => {
    const { run, terminals } = openEditor({ file: "src/a.ts", selected: [2, 6, 4] });
    run("gyre.open");
    expect(terminals).toMatchObject([
      {
        shown: 1,
        options: {
          name: "gyre",
          cwd: FOLDER,
          shellPath: "gyre",
          shellArgs: ["--draft", "src/a.ts:3-7 "],
          location: { viewColumn: -2 },
        },
      },
    ]);
  });

  it("adds a selection to the prompt that is open, as a paste that sends nothing", () => {
    const { run, terminals } = openEditor({ file: "src/a.ts", selected: [4, 5, 0] });
    run("gyre.open");
    run("gyre.addSelection");
    expect(terminals).toHaveLength(1);
    expect(terminals[0]?.sent).toEqual(["\u001B[200~src/a.ts:5 \u001B[201~"]);
    expect(terminals[0]?.shown).toBe(2);
  });

  it("opens another one after the terminal was closed", () => {
    const { run, terminals } = openEditor({ file: "src/a.ts" });
    run("gyre.addSelection");
    terminals[0]?.close();
    run("gyre.addSelection");
    expect(terminals.map(({ options }) => options.shellArgs)).toEqual([
      ["--draft", "src/a.ts "],
      ["--draft", "src/a.ts "],
    ]);
  });

  it("uses the program and the options of the settings, and no draft without a file", () => {
    const settings = { "gyre.command": "/opt/gyre", "gyre.arguments": ["--mode", "plan"] };
    const { run, terminals } = openEditor({ settings });
    run("gyre.open");
    expect(terminals[0]?.options).toMatchObject({
      shellPath: "/opt/gyre",
      shellArgs: ["--mode", "plan"],
    });
  });

  it("says that it needs a folder where none is open", () => {
    const { run, terminals, errors } = openEditor({ folder: "" });
    run("gyre.open");
    expect(terminals).toEqual([]);
    expect(errors).toEqual(["gyre works in a folder: open one first."]);
  });

  it("names a file outside of the folder whole, and no file whose name has control characters", () => {
    const outside = openEditor({ file: "../notes.md", selected: [0, 0, 3] });
    outside.run("gyre.open");
    expect(outside.terminals[0]?.options.shellArgs).toEqual(["--draft", "/home/ada/notes.md:1 "]);
    const hostile = openEditor({ file: "a\u001B[201~\rrm -rf .ts" });
    hostile.run("gyre.open");
    expect(hostile.terminals[0]?.options.shellArgs).toEqual([]);
  });
});
