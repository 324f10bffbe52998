import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildEnvironment } from "../packages/cli/src/testing/program.ts";
import { editorWith } from "../packages/cli/src/testing/editor-driver.ts";
import { scriptedService } from "../packages/cli/src/testing/scripted-service.ts";
import { openCommand, type TerminalRun } from "../packages/cli/src/testing/terminal-program.ts";
import { formatKeyLabel, KeyBindings } from "../packages/cli/src/core/key-bindings.ts";
import {
  DEFAULT_KEYS,
  type KeySettings,
} from "../packages/coding/src/settings/terminal/key-actions.ts";
import {
  STATUS_FIELDS,
  type StatusLineSetting,
  statusLineProblems,
} from "../packages/coding/src/settings/terminal/status-line.ts";
import { describeFacts } from "../packages/cli/src/modes/tui/status-line/status-line.ts";
import { keyProblems } from "../packages/coding/src/settings/terminal/key-problems.ts";
import { listBuiltin } from "../packages/cli/src/slash-commands/find-commands.ts";
import { customCommands } from "../packages/cli/src/slash-commands/custom.ts";
import { commandTable, listKeyGroups } from "../packages/cli/src/slash-commands/help.ts";
import { COLORS } from "../packages/cli/src/modes/tui/terminal/theme.ts";
import { loadTheme } from "../packages/cli/src/modes/tui/themes/themes.ts";
import { escapeMarks, partsMarkdown } from "../packages/cli/src/text/markdown-text.ts";
import type {
  SlashCommand,
  SlashContext,
} from "../packages/cli/src/slash-commands/command-context.ts";
import { mustRun, run } from "../scripts/shared/command.mjs";
import { readFences, root } from "./snippets.ts";

const KEY_GROUPS = listKeyGroups(new KeyBindings());
let page: string;
/** For all that is made here. */
let folder: string;

beforeAll(async () => {
  page = await readFile(join(root, "docs/terminal.md"), "utf8");
  folder = await mkdtemp(join(await realpath(tmpdir()), "gyre-terminal-page-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The rows of the first table below a heading, without its head. */
function rowsBelow(heading: string): string[] {
  const start = page.indexOf(`\n${heading}\n`);
  if (start < 0) throw new Error(`The page has no heading "${heading}".`);
  const [section = ""] = page.slice(start + heading.length + 2).split(/^#+ /m, 1);
  return section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2);
}

/** The rows of the table of `/help`. */
function readCommands(commands: readonly SlashCommand[]): string[] {
  return partsMarkdown([commandTable(commands)], 80)
    .split("\n")
    .slice(2);
}

describe("the theme of the page", () => {
  it("can be used, and the page names all that a theme changes", () => {
    const fence = readFences(page).find(({ note }) => note.includes("themes/sea.json"));
    const home = join(folder, "theme");
    mkdirSync(join(home, ".gyre/themes"), { recursive: true });
    writeFileSync(join(home, ".gyre/themes/sea.json"), fence?.body ?? "");
    const styles = loadTheme("sea", { env: { HOME: folder, TERM: "xterm-256color" }, cwd: home });
    expect(styles).toMatchObject({ accent: "38;5;74", heading: "1;94", prompt: "48;5;236" });
    const [, named = ""] = /What can be changed: ([^.]*)\./.exec(page) ?? [];
    expect(named.match(/\w+/g)).toEqual(Object.keys(COLORS));
  });
});

describe("the keys of the page", () => {
  it.each(KEY_GROUPS)("are those of /help: $title", ({ title, keys }) => {
    const listed = keys.map((key) => `| ${escapeMarks(key.keys)} | ${key.about} |`);
    expect(rowsBelow(`### ${title}`)).toEqual(listed);
  });

  it("have all that the editor takes", () => {
    const named = new Set(namedKeys());
    const missing = allKeys().filter((key) => isTaken(key) && !named.has(key));
    expect(missing).toEqual([]);
  });

  it("have none of the editor that it does not take", () => {
    const keys = rowsBelow("### More keys of the editor").flatMap(keysIn);
    expect(keys.length).toBeGreaterThan(15);
    expect(keys.filter((key) => !isTaken(key))).toEqual([]);
  });
});

/** Every key that a table or a sentence of the page names, small: `ctrl+shift+z`. */
function namedKeys(): string[] {
  const rows = KEY_GROUPS.flatMap(({ title }) => rowsBelow(`### ${title}`));
  return [...rows, ...rowsBelow("### More keys of the editor")].flatMap(keysIn);
}

/** The keys of a row; those that its words mention count too. */
function keysIn(row: string): string[] {
  const [, keys = "", about = ""] = row.split(/ ?\| ?/);
  const mentioned = about.match(/\b(?:Ctrl|Alt|Shift)\+\w+/g) ?? [];
  return [...keys.replaceAll("\\", "").split(/, | /), ...mentioned].map((key) =>
    key.toLowerCase().replace(/page(up|down)/, (_, way) => (way === "up" ? "pageUp" : "pageDown")),
  );
}

const NAMED = "enter tab backspace delete up down left right home end pageUp pageDown".split(" ");
const SIGNS = [..."abcdefghijklmnopqrstuvwxyz_/-<>"];
const HELD = ["", "ctrl+", "alt+", "shift+", "ctrl+shift+"];

/** Keys as the editor gets them: what is typed without Ctrl or Alt is text. */
function allKeys(): string[] {
  const held = HELD.flatMap((each) => NAMED.map((name) => each + name));
  return [
    ...held,
    ...["ctrl+", "alt+", "ctrl+shift+"].flatMap((each) => SIGNS.map((s) => each + s)),
  ];
}

function isTaken(key: string): boolean {
  const { press, type } = editorWith({ prompts: ["earlier"] });
  type("some words");
  press("left");
  return press(key).type !== "unhandled";
}

describe("the names of actions of the page", () => {
  it("are all that keys can be set for, with their usual keys", () => {
    const expected = Object.entries(DEFAULT_KEYS).map(([action, keys]) => [
      `\`${action}\``,
      keys.split(" ").filter(Boolean).map(formatKeyLabel).join(", "),
    ]);
    const rows = rowsBelow("### Other keys").map((row) => row.split(/ ?\| ?/).slice(1, 3));
    expect(rows).toEqual(expected);
  });

  it("can be set as the example does", () => {
    const fence = readFences(page).find(({ body }) => body.includes('"keys"'));
    const { keys } = JSON.parse(fence?.body ?? "{}") as { keys: KeySettings };
    expect(keyProblems(keys)).toEqual([]);
    expect(new KeyBindings(keys).label("expand")).toBe("Ctrl+X");
  });
});

describe("the status line of the page", () => {
  it("names all fields of a template, and its examples can be used", () => {
    const [, named = ""] = /The fields are ([^;]*);/.exec(page) ?? [];
    expect(named.match(/(?<=`)\w+(?=`)/g)).toEqual([...STATUS_FIELDS]);
    const fences = readFences(page).filter(({ body }) => body.includes('"statusLine"'));
    const lines = fences.map(({ body }) => JSON.parse(body) as { statusLine: StatusLineSetting });
    expect(lines.map(({ statusLine }) => statusLineProblems(statusLine))).toEqual([[], []]);
  });

  it("names all that a program gets", () => {
    const usage = { input: 1, output: 1 };
    const facts = { thinking: "off", mode: "ask", usage, model: { id: "m" } } as const;
    const { hook_event_name: _, ...given } = describeFacts(facts);
    const rows = rowsBelow("### Status line").map((row) => row.split(/ ?\| ?/));
    const named = rows.flatMap(([, fields = ""]) => fields.match(/\w+/g) ?? []);
    expect(named.toSorted()).toEqual(Object.keys(given).toSorted());
    for (const [, field = "", about = ""] of rows) {
      const parts = given[field.replaceAll("`", "")];
      if (typeof parts !== "object" || parts === null) continue;
      const listed = about.match(/(?<=`)\w+(?=`)/g) ?? [];
      expect(listed.toSorted()).toEqual(Object.keys(parts).toSorted());
    }
  });
});

describe("the commands of the page", () => {
  it("are those of the program, in its words", () => {
    expect(rowsBelow("## Commands")).toEqual(readCommands(listBuiltin("terminal")));
  });

  it("are listed apart by whether they work while the agent does", () => {
    const [, listed = ""] =
      /hold for all\. ((?:`\/\w+`(?:,\s| and\s|\s))+)work while/.exec(page) ?? [];
    const anytime = listBuiltin("terminal").filter((command) => command.allowWhileRunning);
    const names = listed.match(/(?<=`\/)\w+/g) ?? [];
    expect(names.toSorted()).toEqual(anytime.map(({ name }) => name).toSorted());
  });

  it("are those of the screen-reader mode, too", () => {
    const own = new Set(listBuiltin("terminal"));
    const lines = listBuiltin("screen reader").filter((command) => !own.has(command));
    expect(rowsBelow("### Screen readers")).toEqual(readCommands(lines));
  });

  it("are those of an editor in its page", async () => {
    const [, listed = ""] =
      /^\| Commands \| (.*); and/m.exec(await readFile(join(root, "docs/editors.md"), "utf8")) ??
      [];
    const names = listBuiltin("editor").map(({ name }) => `\`/${name}\``);
    expect(listed).toBe(names.join(", "));
  });

  it("can be added to as the example does it", async () => {
    const [example] = readFences(page).filter(({ language }) => language === "markdown");
    const cwd = join(folder, "example");
    const file = join(cwd, example?.note ?? "");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, example?.body ?? "");
    const warnings: string[] = [];
    const warn = (text: string): void => void warnings.push(text);
    const places = { cwd, home: folder, config: join(folder, "config") };
    const [review] = await customCommands({ ...places, harness: {}, own: [], warn });
    const sent = await review?.run("src/cart.js", {} as SlashContext);
    expect([review?.name, review?.about, review?.hint, warnings]).toEqual([
      "review",
      "Review a file",
      "[file]",
      [],
    ]);
    expect(sent).toEqual({
      prompt: "Review src/cart.js. Look for what a test would not find. src/cart.js",
    });
  });
});

describe("npm start", () => {
  let script: string;
  let home: string;

  beforeAll(async () => {
    // As in a clone after a build, with the program as its sources are now.
    const clone = join(folder, "clone");
    script = join(clone, "scripts/drive/start.mjs");
    home = join(folder, "home");
    for (const path of [dirname(script), join(clone, "packages/cli"), join(home, "tmp")]) {
      mkdirSync(path, { recursive: true });
    }
    for (const path of ["scripts/drive/start.mjs", "packages/cli/package.json"]) {
      copyFileSync(join(root, path), join(clone, path));
    }
    symlinkSync(join(root, "node_modules"), join(clone, "node_modules"), "junction");
    const bundle = join(root, "scripts/release/bundle-cli.mjs");
    const into = join(clone, "packages/cli/bundle");
    await mustRun(process.execPath, [bundle, "--sources", "--into", into], { cwd: root });
  });

  it("is what package.json says", async () => {
    const { scripts } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    expect(scripts["start"]).toBe("node scripts/drive/start.mjs");
  });

  it("plays the demo where there is no terminal, and ends with 0", async () => {
    const env = buildEnvironment(home);
    const { code, output } = await run(process.execPath, [script, "--fast"], { cwd: home, env });
    expect(output).toContain(
      "The model was scripted; the tools, the files and the test runs were real.",
    );
    expect(code).toBe(0);
  });

  it("runs a command where there is no terminal", async () => {
    const env = buildEnvironment(home);
    const command = [script, "runs", "list", "--database", "file:./none.db"];
    const { code, output } = await run(process.execPath, command, { cwd: home, env });
    expect(output).toContain("none.db");
    expect(output).not.toContain("demo");
    expect(code).not.toBe(0);
  });

  it("offers the scripted model in a terminal without a key, and says what it is", async () => {
    await inTerminal(buildEnvironment(home), async (terminal) => {
      await terminal.until("Try the scripted model");
      terminal.press("enter");
      await terminal.until("no service is asked");
      await terminal.until(/gyre [\d.]+ · scripted model/);
      terminal.press("ctrl+d");
      expect(await terminal.end).toEqual({ code: 0, signal: undefined });
    });
  });

  it("is the agent in a terminal with a key; Ctrl-C reaches it once", async () => {
    const service = await scriptedService([{ say: "Hello." }]);
    try {
      await inTerminal(buildEnvironment(home, service), async (terminal) => {
        await terminal.until(/gyre [\d.]+ · /);
        terminal.type("Say hello.");
        terminal.press("enter");
        // Before the run is over it would be interrupted.
        await terminal.until((rows) => {
          const shown = rows.join("\n");
          return shown.includes("Hello.") && !shown.includes("Esc interrupts");
        });
        terminal.press("ctrl+c");
        await terminal.until("Ctrl-C again leaves.");
        terminal.press("ctrl+c");
        expect(await terminal.end).toEqual({ code: 0, signal: undefined });
      });
    } finally {
      await service.close();
    }
  });

  async function inTerminal(
    env: Readonly<Record<string, string>>,
    work: (terminal: TerminalRun) => Promise<void>,
  ): Promise<void> {
    const terminal = openCommand([process.execPath, script], { cwd: home, env });
    try {
      await work(terminal);
    } finally {
      terminal.kill();
      await terminal.end;
    }
  }
});
