import { readFileSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
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
  /** Command lines of it, where they can be read. */
  lines: readonly string[];
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

/** The script of the project that a command runs, if it runs one. `cwd` is absolute and in the workspace. */
export function findScript(
  program: string,
  words: readonly string[],
  cwd: string,
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
      return name === "" ? undefined : { name, lines: readPackageScripts(cwd, name) };
    }
    case "make":
    case "gmake":
      return { name: command, lines: readMakefile(cwd, operands) };
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
      return { name: findBaseName(command), lines: readShell(cwd, command, true) };
    case "node":
    case "tsx":
    case "ts-node":
    case "python":
    case "python3":
    case "ruby":
    case "perl":
    case "php":
    case "deno":
      return /\.\w+$/.test(command) ? { name: findBaseName(command), lines: [] } : undefined;
    default:
      return first.includes("/")
        ? { name: findBaseName(first), lines: readShell(cwd, first, false) }
        : undefined;
  }
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

function readPackageScripts(cwd: string, name: string): string[] {
  const text = readSmall(join(cwd, "package.json"));
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

function readShell(cwd: string, path: string, isShell: boolean): string[] {
  if (path === "" || path.startsWith("-")) return [];
  const text = readSmall(isAbsolute(path) ? path : join(cwd, path));
  if (text === undefined || text.includes("\0")) return [];
  const isMeant =
    isShell ||
    /^#!.*\b(?:ba|da|z)?sh\b/.test(text) ||
    (path.endsWith(".sh") && !text.startsWith("#!"));
  return isMeant ? [text] : [];
}

/** The lines of these goals and of what they need, as far as plain rules say it. */
function readMakefile(cwd: string, goals: readonly string[]): string[] {
  const text = ["GNUmakefile", "makefile", "Makefile"]
    .map((name) => readSmall(join(cwd, name)))
    .find((each) => each !== undefined);
  if (text === undefined) return [];
  const rules = new Map<string, { needs: string[]; lines: string[] }>();
  let open: { needs: string[]; lines: string[] }[] = [];
  for (const line of text.replaceAll("\\\n", " ").split("\n")) {
    const rule = /^([^\s#:=][^#:=]*):(?![:=])\s*([^#;]*)/.exec(line);
    if (line.startsWith("\t"))
      for (const each of open) each.lines.push(line.trim().replace(/^[@+-]+/, ""));
    else if (rule) {
      const needs = (rule[2] ?? "").split(/\s+/).filter(Boolean);
      open = (rule[1] ?? "")
        .trim()
        .split(/\s+/)
        .map((name) => {
          const known = rules.get(name) ?? { needs: [], lines: [] };
          known.needs.push(...needs);
          rules.set(name, known);
          return known;
        });
    }
  }
  const first = [...rules.keys()].find((name) => !name.startsWith("."));
  const waiting = goals.length > 0 ? [...goals] : first === undefined ? [] : [first];
  const seen = new Set<string>();
  const lines: string[] = [];
  for (let goal = waiting.pop(); goal !== undefined; goal = waiting.pop()) {
    const rule = seen.has(goal) ? undefined : rules.get(goal);
    seen.add(goal);
    if (!rule) continue;
    lines.push(...rule.lines);
    waiting.push(...rule.needs);
  }
  return lines;
}
