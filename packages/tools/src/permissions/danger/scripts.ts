import { existsSync, readFileSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Drafts } from "../follow/drafts.ts";
import { isInterpreter } from "../follow/written.ts";
import { listOperands } from "./options.ts";

/** Of a script that is looked into. */
const MAX_SCRIPT_BYTES: number = 64 * 1024;

/** Names of scripts that say that other machines are reached, and that something is destroyed. */
const SENDS = new Set("deploy publish upload release rollback provision".split(" "));
const DESTROYS = new Set("drop destroy wipe nuke purge".split(" "));
const TESTED = new Set("test tests spec mock dry check notes".split(" "));

/** A script of the project that a command runs. */
export interface Script {
  /** As a person would write it. */
  name: string;
  /** Command lines of it, where they can be read; of code, its text. */
  lines: readonly string[];
  /** The file, absolute. */
  path?: string;
  /** The line that runs it has written it. */
  isDraft?: boolean;
  isCode?: boolean;
  /** The program that its first line names, where that is no shell. */
  interpreter?: string;
  /** Lines of it that may set variables. */
  variables?: readonly string[];
  /** The line that runs it writes what is not known to it, or it is not there yet. */
  isUnknown?: boolean;
}

/** Where a script is run. */
export interface ScriptPlace {
  /** Absolute, and in the workspace. */
  cwd: string;
  /** What the line itself writes. */
  drafts: Drafts;
  /** What the program reads, if that is known. */
  input: string | undefined;
}

/** What its name says that a script does. */
export function judgeName(name: string): "network" | "destructive" | undefined {
  const parts = name
    .replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  if (parts.some((part) => TESTED.has(part))) return undefined;
  if (parts.some((part) => SENDS.has(part))) return "network";
  const resets =
    parts.includes("reset") && parts.some((part) => /^(?:db|database|data)$/.test(part));
  return resets || parts.some((part) => DESTROYS.has(part)) ? "destructive" : undefined;
}

/** The script of the project that a command runs, if it runs one. */
export function findScript(
  program: string,
  words: readonly string[],
  place: ScriptPlace,
): Script | undefined {
  const [first = "", ...args] = words;
  const operands = listOperands(program, args);
  const [command = "", next = ""] = operands;
  switch (program) {
    case "npm":
    case "pnpm":
    case "yarn":
    case "bun": {
      const runs = /^(?:run|run-script|rum|urn)$/.test(command);
      const isShort =
        program === "npm" ? /^(?:test|t|tst|start|stop|restart)$/.test(command) : true;
      const name = runs ? next : isShort ? command.replace(/^(?:t|tst)$/, "test") : "";
      if (name === "") return undefined;
      const file = readFile("package.json", place);
      return { name, ...file, lines: listPackageScripts(file?.lines[0], name) };
    }
    case "make":
    case "gmake": {
      const given = args.findIndex((arg) => /^(?:-f|--file=?|--makefile=?)/.test(arg));
      const inside = /^(?:-f|--file=|--makefile=)(.+)$/s.exec(args[given] ?? "")?.[1];
      const file = inside ?? args[given + 1] ?? "";
      const goals = operands.filter(
        (operand) => !operand.includes("=") && (given < 0 || operand !== file),
      );
      const made = readMakefile(given < 0 ? undefined : file, goals, place);
      const lines = [...made.lines, ...listShellCalls(args.join("\n"))];
      return {
        name: goals[0] ?? "",
        ...made,
        lines: lines.map((line) => fillVariables(line, [...(made.variables ?? []), ...args])),
      };
    }
    case "just":
    case "task":
    case "rake":
    case "rails":
    case "gradle":
    case "gradlew":
      return { name: command, lines: [] };
    case "bash":
    case "sh":
    case "dash":
    case "zsh":
    case "source":
    case ".":
      // Behind "-c" there is no file.
      return args.some((arg) => /^-\w*c$/.test(arg)) ? undefined : readShell(command, place, true);
    case "node":
    case "tsx":
    case "ts-node":
    case "python":
    case "python3":
    case "ruby":
    case "perl":
    case "php":
    case "deno":
      return readCode(command, place);
    default: {
      if (first.includes("/")) return readShell(first, place, false);
      // One that the line puts where package managers install programs.
      const installed = place.drafts.findProgram(first);
      return installed === undefined ? undefined : readShell(installed, place, true);
    }
  }
}

/** The file with code that an interpreter is given: also one without an ending, or the main one of a folder. */
function readCode(path: string, place: ScriptPlace): Script | undefined {
  const hasEnding = /\.\w+$/.test(path);
  const names = hasEnding
    ? [path]
    : [path, `${path}.js`, `${path}/index.js`, `${path}/__main__.py`];
  const file = path === "" ? undefined : names.map((name) => readFile(name, place)).find(Boolean);
  return hasEnding || file
    ? { name: findBaseName(path), lines: [], ...file, isCode: true }
    : undefined;
}

/** A file: as the line writes it, or as it is. */
function readFile(
  path: string,
  { cwd, drafts }: ScriptPlace,
): (Pick<Script, "lines" | "isDraft"> & { path: string }) | undefined {
  const absolute = isAbsolute(path) ? path : join(cwd, path);
  const sources = drafts.listSources(absolute, ["copied", "moved", "linked"]);
  const found = sources.flatMap((source) => {
    const text = readSmall(source);
    return text === undefined ? [] : [{ path: source, text }];
  });
  const draft = drafts.read(absolute);
  // What is there, or is copied there, may be run in place of what is written, or behind it.
  const texts = found.map(({ text }) => text);
  if (draft !== undefined) return { path: absolute, lines: [draft, ...texts], isDraft: true };
  const [first] = found;
  return first && { path: first.path, lines: texts };
}

function findBaseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function readSmall(path: string): string | undefined {
  try {
    const stats = statSync(path);
    return stats.isFile() && stats.size <= MAX_SCRIPT_BYTES
      ? readFileSync(path, "utf8")
      : undefined;
  } catch {
    // What cannot be read does not run either.
    return undefined;
  }
}

function listPackageScripts(text: string | undefined, name: string): string[] {
  try {
    const parsed: unknown = JSON.parse(text ?? "{}");
    const scripts =
      typeof parsed === "object" && parsed !== null && "scripts" in parsed ? parsed.scripts : {};
    const all = new Map(
      Object.entries(typeof scripts === "object" && scripts !== null ? scripts : {}),
    );
    return [`pre${name}`, name, `post${name}`].flatMap((each) => {
      const line: unknown = all.get(each);
      return typeof line === "string" ? [line] : [];
    });
  } catch {
    // The program that runs it reports what is wrong with the file.
    return [];
  }
}

function readShell(path: string, place: ScriptPlace, isShell: boolean): Script {
  const name = findBaseName(path);
  const file = path === "" || path.startsWith("-") ? undefined : readFile(path, place);
  const [text] = file?.lines ?? [];
  const absolute = isAbsolute(path) ? path : join(place.cwd, path);
  // What the line makes in another way.
  const isMissing = isShell && !file && name !== "activate" && isName(path, absolute);
  if (isMissing || place.drafts.isUnknown(absolute)) return { name, lines: [], isUnknown: true };
  if (!file || text === undefined || text.includes("\0")) return { name, lines: [] };
  const interpreter = isShell ? undefined : findInterpreter(text);
  if (file.isDraft && interpreter !== undefined)
    return isInterpreter(interpreter)
      ? { name, ...file, isCode: true, interpreter }
      : { name, lines: [], isUnknown: true };
  const isMeant =
    isShell ||
    file.isDraft ||
    /^#!.*\b(?:ba|da|z)?sh\b/.test(text) ||
    (path.endsWith(".sh") && !text.startsWith("#!"));
  return isMeant ? { name, ...file } : { name, lines: [] };
}

/** The program that runs a script by its first line, unless that is a shell. */
function findInterpreter(text: string): string | undefined {
  const [, path = "", rest = ""] = /^#!\s*(\S+)[ \t]*(.*)/.exec(text) ?? [];
  const name = findBaseName(path);
  const program = name === "env" ? (/(?:^|\s)(?!-)([\w.]+)/.exec(rest)?.[1] ?? "") : name;
  return program === "" || /^(?:ba|da|z|k)?sh$/.test(program) ? undefined : program;
}

function isName(path: string, absolute: string): boolean {
  return /^[\w./-]+$/.test(path) && !path.startsWith("-") && !existsSync(absolute);
}

/** The lines of these goals and of what they need, as far as plain rules say it. */
function readMakefile(
  given: string | undefined,
  goals: readonly string[],
  place: ScriptPlace,
): Omit<Script, "name"> {
  if (given === "-") {
    const lines = place.input === undefined ? [] : listRecipes(place.input, goals);
    return { lines, isDraft: true };
  }
  const names = given === undefined ? ["GNUmakefile", "makefile", "Makefile"] : [given];
  const file = names.map((name) => readFile(name, place)).find((each) => each !== undefined);
  if (!file) return { lines: [] };
  const [text = ""] = file.lines;
  const isUnknown =
    (file.isDraft && OTHER_MAKEFILE.test(text)) || place.drafts.isUnknown(file.path);
  return {
    ...file,
    lines: listRecipes(text, goals),
    variables: text.split("\n").filter((line) => /^\w+\s*[:?+]?=/.test(line)),
    ...(isUnknown && { isUnknown }),
  };
}

/** A makefile that says how it is to be read, or has more elsewhere. */
const OTHER_MAKEFILE = /^\s*(?:-?include|sinclude|define|\.RECIPEPREFIX)\b/m;

/** A line with the values of variables that are set like `NAME=value`, the last one of each. */
function fillVariables(line: string, settings: readonly string[]): string {
  const values = new Map(
    settings.flatMap((setting): [string, string][] => {
      const [, name, value] = /^\s*(\w+)\s*[:?+]?=\s*(.*)$/.exec(setting) ?? [];
      return name === undefined ? [] : [[name, value ?? ""]];
    }),
  );
  return line.replaceAll(
    /\$(?:\((\w+)\)|\{(\w+)\}|(\w))/g,
    (whole, one?: string, two?: string, three?: string) =>
      values.get(one ?? two ?? three ?? "") ?? whole,
  );
}

/** What a makefile runs whatever is made. */
function listShellCalls(text: string): string[] {
  const calls = text.matchAll(/\$\(shell\s+([^\n]*)\)|^[ \t]*[\w.-]+[ \t]*!=[ \t]*(.*)$/gm);
  return [...calls].map(([, call, assigned]) => call ?? assigned ?? "");
}

/** Whether a rule for names of a kind, as "%.o", is one for a goal. */
function matchesRule(goal: string, name: string): boolean {
  const [before = "", behind, ...more] = name.split("%");
  return (
    behind !== undefined && more.length === 0 && goal.startsWith(before) && goal.endsWith(behind)
  );
}

function listRecipes(text: string, goals: readonly string[]): string[] {
  const rules = new Map<string, { needs: string[]; lines: string[] }>();
  let open: { needs: string[]; lines: string[] }[] = [];
  for (const line of text.replaceAll("\\\n", " ").split("\n")) {
    const rule = /^([^\s#:=][^#:=]*):(?![:=])\s*([^#;]*)/.exec(line);
    if (line.startsWith("\t"))
      for (const each of open)
        each.lines.push(
          line
            .trim()
            .replace(/^[@+-]+/, "")
            .replaceAll("$$", "$"),
        );
    else if (rule) {
      const needs = (rule[2] ?? "").split(/\s+/).filter(Boolean);
      open = (rule[1] ?? "")
        .trim()
        .split(/\s+/)
        .map((name) => {
          const known = rules.get(name) ?? { needs: [], lines: [] };
          known.needs.push(...needs);
          const inline = /;(.*)$/.exec(line)?.[1]?.trim();
          if (inline !== undefined && inline !== "") known.lines.push(inline);
          rules.set(name, known);
          return known;
        });
    }
  }
  const first = [...rules.keys()].find((name) => !name.startsWith("."));
  const waiting = goals.length > 0 ? [...goals] : first === undefined ? [] : [first];
  const seen = new Set<string>();
  const lines: string[] = listShellCalls(text);
  for (let goal = waiting.pop(); goal !== undefined; goal = waiting.pop()) {
    if (seen.has(goal)) continue;
    seen.add(goal);
    for (const [name, rule] of rules) {
      if (name !== goal && !matchesRule(goal, name)) continue;
      lines.push(...rule.lines);
      waiting.push(...rule.needs);
    }
  }
  return lines;
}
