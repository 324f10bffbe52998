import { errorMessage, isRecord, toRecord } from "@gyre/ai";
import {
  type HookAnswer,
  type HookEvent,
  type HookInput,
  type ProgramEnd,
  runProgram,
  sanitize,
} from "@gyre/tools";
import { type CommandHook, shownCommand } from "../settings/hooks.ts";

const MS = 1000;
/** The exit code that says no. */
const BLOCKS = 2;
/** What is taken of a text that a hook gives, in characters. */
export const MAX_HOOK_TEXT_CHARS = 10_000;
/** How much of a command is shown. */
const MAX_SHOWN_CHARS = 80;

/** Where hooks run. */
export interface HookPlace {
  /** The folder that is worked in, absolute. */
  cwd: string;
  /** Already clean. */
  env: Readonly<Record<string, string>>;
  /** For output that is too long for memory. */
  spoolFolder: string;
}

/** A hook did not do what it is there for; what it was about goes on. */
export class HookError extends Error {}

/**
 * Runs the program of a hook with its input, and returns what it answers. Nothing that it
 * started is left running, also when `signal` fires: the answer is then undefined. Rejects
 * with `HookError` where it failed, took too long, or gave what cannot be understood.
 */
export async function runHook(
  hook: CommandHook,
  input: HookInput,
  place: HookPlace,
  signal: AbortSignal,
): Promise<HookAnswer | undefined> {
  const fail = (what: string): HookError => new HookError(`${shownHook(hook)} ${what}`);
  const program = { argv: buildArgv(hook.command), cwd: place.cwd, env: place.env };
  let end: ProgramEnd;
  try {
    end = await runProgram(program, {
      input: `${JSON.stringify(input)}\n`,
      spoolFolder: place.spoolFolder,
      timeoutMs: hook.timeoutSeconds * MS,
      signal,
    });
  } catch (error) {
    throw fail(`could not be run: ${errorMessage(error)}`);
  }
  if (end.aborted) return undefined;
  if (end.timedOut) throw fail(`was ended: it took more than ${hook.timeoutSeconds} s`);
  const stderr = cut(end.stderr.head.trim());
  if (end.exitCode === BLOCKS) {
    return { block: stderr || `${shownHook(hook)} gave no reason.` };
  }
  if (end.exitCode !== 0) {
    const how = end.exitCode === null ? `was ended by ${end.signal}` : `ended with ${end.exitCode}`;
    throw fail(stderr === "" ? how : `${how}: ${stderr}`);
  }
  const answer =
    end.stdout.tail === ""
      ? answerIn(end.stdout.head.trim(), hook.event)
      : `wrote ${end.stdout.bytes} bytes, which is too much`;
  if (typeof answer !== "string") return answer;
  // The answer is unknown: a call that the hook watches over is not made.
  if (hook.event === "PreToolUse") return { block: `${shownHook(hook)} ${answer}.` };
  throw fail(answer);
}

/** The hook in a message. */
export function shownHook({ event, command }: Pick<CommandHook, "event" | "command">): string {
  const shown = shownCommand(command);
  const short = shown.length > MAX_SHOWN_CHARS ? `${shown.slice(0, MAX_SHOWN_CHARS)}…` : shown;
  return `The ${event} hook "${short}"`;
}

/** A program and its arguments: a text is for a shell. */
export function buildArgv(command: CommandHook["command"]): readonly string[] {
  if (typeof command !== "string") return command;
  return process.platform === "win32"
    ? ["cmd.exe", "/d", "/s", "/c", command]
    : ["/bin/sh", "-c", command];
}

/** Events whose plain output is for the model. */
const ADDS_CONTEXT: ReadonlySet<HookEvent> = new Set<HookEvent>([
  "UserPromptSubmit",
  "SessionStart",
]);

/** A text: what is wrong with it. */
function answerIn(stdout: string, event: HookEvent): HookAnswer | string | undefined {
  const output = stdout.startsWith("{") ? objectIn(stdout) : undefined;
  if (output) return parseAnswer(output, event);
  if (ADDS_CONTEXT.has(event)) return stdout === "" ? undefined : { context: cut(stdout) };
  // It may have said no.
  return stdout.startsWith("{") ? "gave JSON that cannot be read" : undefined;
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    // Then it is a text that begins with a bracket.
    return undefined;
  }
}

/** Events that `"continue": false` keeps from happening; others have happened. */
const ENDED_BY_CONTINUE: ReadonlySet<HookEvent> = new Set<HookEvent>([
  "PreToolUse",
  "UserPromptSubmit",
]);

/** What an object on standard output means. Fields that we do not know are passed over. */
function parseAnswer(output: Record<string, unknown>, event: HookEvent): HookAnswer | string {
  const given = output["hookSpecificOutput"];
  const specific = toRecord(given);
  const decision = specific["permissionDecision"] ?? output["decision"];
  const reason =
    textIn(specific["permissionDecisionReason"]) ??
    textIn(output["reason"]) ??
    textIn(output["stopReason"]);
  const message = textIn(output["systemMessage"]);
  const context = textIn(specific["additionalContext"]) ?? textIn(output["additionalContext"]);
  const input = specific["updatedInput"];
  if (input !== undefined && !isRecord(input)) return "gave an updatedInput that is no object";
  if (decision !== undefined && !isDecision(decision)) {
    return `gave a decision that there is not, ${JSON.stringify(decision)}`;
  }
  const wants = decision && DECISIONS[decision];
  const ends = output["continue"] === false && ENDED_BY_CONTINUE.has(event);
  return {
    ...((wants === "block" || ends) && { block: reason ?? "It gave no reason." }),
    ...((wants === "allow" || wants === "ask") && { permission: wants }),
    ...(reason !== undefined && { reason }),
    ...(input !== undefined && { input }),
    ...(context !== undefined && { context }),
    ...(message !== undefined && { message }),
  };
}

/** What may be decided, in words new and old. */
const DECISIONS = {
  allow: "allow",
  approve: "allow",
  ask: "ask",
  deny: "block",
  block: "block",
} as const;

function isDecision(value: unknown): value is keyof typeof DECISIONS {
  return typeof value === "string" && Object.hasOwn(DECISIONS, value);
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? cut(value.trim()) : undefined;
}

function cut(text: string): string {
  const plain = sanitize(text.slice(0, MAX_HOOK_TEXT_CHARS));
  return text.length <= MAX_HOOK_TEXT_CHARS ? plain : `${plain}\n[The rest was left out.]`;
}
