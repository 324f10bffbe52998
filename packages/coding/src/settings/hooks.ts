import { TOOLS } from "@gyre/tools/catalog";
import type { HookEvent } from "@gyre/tools";

/** The events that there are hooks for. */
export const HOOK_EVENTS: readonly HookEvent[] = [
  "PreToolUse",
  "PostToolUse",
  "UserPromptSubmit",
  "SessionStart",
  "Stop",
  "PreCompact",
];

const DEFAULT_SECONDS = 60;
const MAX_SECONDS = 86_400;

/** Hooks as a file has them. */
export type HookSettings = Readonly<Record<string, unknown>>;

/** A program to run at an event. */
export interface CommandHook {
  event: HookEvent;
  /** Whether it is meant: any of the names of a tool, or what the event is about. */
  matches: (names: readonly string[]) => boolean;
  /** For a shell, or a program and its arguments. */
  command: string | readonly string[];
  timeoutSeconds: number;
}

export interface ParsedHooks {
  hooks: readonly CommandHook[];
  /** What cannot be used, with its place. */
  problems: readonly string[];
  /** Events that others have and we do not: passed over. */
  unknown: readonly string[];
}

/**
 * The hooks of a file, in order. Two shapes are read: `{matcher, command, timeout}`, and
 * `{matcher, hooks: [{type: "command", command, timeout}]}`, which other agents have.
 */
export function parseHooks(settings: HookSettings): ParsedHooks {
  const hooks: CommandHook[] = [];
  const problems: string[] = [];
  const unknown: string[] = [];
  for (const [event, groups] of Object.entries(settings)) {
    const known = HOOK_EVENTS.find((name) => name === event);
    if (!known) unknown.push(event);
    if (!Array.isArray(groups)) {
      problems.push(`${event} must be a list of hooks`);
      continue;
    }
    // Hooks of an event that is not ours may have any shape.
    if (!known) continue;
    for (const [index, group] of groups.entries()) {
      try {
        hooks.push(...parseHookGroup(known, group));
      } catch (error) {
        if (!(error instanceof HookProblem)) throw error;
        problems.push(`${event}[${index}] ${error.message}`);
      }
    }
  }
  return { hooks, problems, unknown };
}

class HookProblem extends Error {}

function parseHookGroup(event: HookEvent, group: unknown): CommandHook[] {
  if (!isObject(group)) throw new HookProblem('must be an object with "command" or "hooks"');
  const matches = parseMatcher(group["matcher"]);
  const inner = group["hooks"];
  const given = inner === undefined ? [group] : inner;
  if (!Array.isArray(given)) throw new HookProblem('must have a list as "hooks"');
  return given.map((hook: unknown) => {
    if (!isObject(hook)) throw new HookProblem('must have objects in "hooks"');
    const { command, timeout = DEFAULT_SECONDS, type = "command" } = hook;
    if (type !== "command") {
      throw new HookProblem(`is of type ${JSON.stringify(type)}; there is "command" alone`);
    }
    if (!isCommand(command)) {
      throw new HookProblem('must have a "command": a text, or a list of a program and arguments');
    }
    if (typeof timeout !== "number" || !(timeout > 0 && timeout <= MAX_SECONDS)) {
      throw new HookProblem(`must have seconds as "timeout", above 0 and at most ${MAX_SECONDS}`);
    }
    return { event, matches, command, timeoutSeconds: timeout };
  });
}

/** A pattern for the whole of a name; nothing, "" and "*" are for all. */
function parseMatcher(matcher: unknown): CommandHook["matches"] {
  if (matcher === undefined || matcher === "" || matcher === "*") return () => true;
  if (typeof matcher !== "string") throw new HookProblem('must have a text as "matcher"');
  let pattern: RegExp;
  try {
    pattern = new RegExp(`^(?:${matcher})$`);
  } catch {
    throw new HookProblem(`has a "matcher" that is no regular expression: ${matcher}`);
  }
  return (names) => names.length === 0 || names.some((name) => pattern.test(name));
}

function isCommand(value: unknown): value is string | readonly string[] {
  if (typeof value === "string") return value.trim() !== "" && !value.includes("\0");
  return (
    Array.isArray(value) &&
    value.every((word) => typeof word === "string" && !word.includes("\0")) &&
    value[0] !== undefined &&
    value[0] !== ""
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * All the names that a matcher may have for a tool: its own, and those of other programs, for
 * whose hooks ours hold as well.
 */
export function namesOfTool(tool: string): readonly string[] {
  return [tool, ...(TOOLS.find(({ name }) => name === tool)?.aliases ?? [])];
}

/** A hook as one line, for messages. */
export function shownCommand(command: CommandHook["command"]): string {
  return typeof command === "string" ? command : command.join(" ");
}
