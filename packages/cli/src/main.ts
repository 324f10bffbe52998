#!/usr/bin/env node
import { parseArgs } from "node:util";
import {
  EXIT,
  type ExitCode,
  ExitError,
  toExitCode,
  OutputError,
  UsageError,
} from "./core/exit-codes.ts";
import type { Io } from "./core/io.ts";
import {
  type CommandName,
  COMMANDS,
  isTypedCommand,
  type OptionName,
  OPTIONS,
  type Values,
} from "./core/options.ts";
import { version } from "@gyre/coding/internal/core/version";

/** A signal within this time after the first is the same key press, handed on by npm or a shell. */
const SAME_PRESS_MS = 300;
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
const SIGNAL_BASE = 128;
/** How long it may take to read the rest of stdout when the time is over, or a signal came. */
const PATIENCE_MS = 500;
/** How often it is looked whether all is written. */
const LEAVING_MS = 100;

/** Runs a command line. Everything a command needs is loaded when it is asked for. */
async function main(args: string[], io: Io): Promise<ExitCode> {
  const { positionals, values } = await readArguments(args);
  if (values.version) {
    io.stdout.write(`${version()}\n`);
    return EXIT.done;
  }
  const { command, rest } = await parseCommand(positionals, values, io);
  if (values.help || command === undefined) {
    const { helpText } = await import("./commands/help.ts");
    io.stdout.write(helpText(command));
    return EXIT.done;
  }
  checkOptions(command, values);
  if (!("takes" in COMMANDS[command]) && rest.length > 0) {
    throw new UsageError(`"${command}" takes no argument "${rest[0]}".`);
  }
  return start[command](rest, values, io);
}

type Start = (args: readonly string[], values: Values, io: Io) => Promise<ExitCode>;

const start: Readonly<Record<CommandName, Start>> = {
  async run(args, given, io) {
    const values = given.worktree
      ? await (await import("./core/worktree.ts")).useWorktree(given, io)
      : given;
    if (!isInteractive(values, io))
      return (await import("./modes/print/print.ts")).runPrint(args, values, io);
    const streams = { input: process.stdin, output: process.stdout };
    return (await import("./modes/interactive.ts")).runInteractive(args, values, io, streams);
  },
  rpc: async (_args, ...given) => (await import("./modes/rpc/rpc.ts")).runRpc(...given),
  acp: async (_args, ...given) => (await import("./modes/acp/acp.ts")).runAcp(...given),
  serve: async (_args, ...given) => (await import("./modes/serve/serve.ts")).runServe(...given),
  attach: async (...given) => (await import("./modes/attach/attach.ts")).runAttach(...given),
  models: async (...given) => (await import("./commands/models.ts")).runModels(...given),
  replay: async (...given) => (await import("./commands/again/replay.ts")).runReplay(...given),
  bisect: async (...given) => (await import("./commands/again/bisect.ts")).runBisect(...given),
  sessions: async (...given) => (await import("./commands/sessions.ts")).runSessions(...given),
  runs: async (...given) => (await import("./commands/runs/runs.ts")).runRuns(...given),
  doctor: async (_args, ...given) =>
    (await import("./commands/doctor/doctor.ts")).runDoctor(...given),
  login: async (...given) => (await import("./commands/login.ts")).runLogin(...given),
  logout: async (...given) => (await import("./commands/login.ts")).runLogout(...given),
  trust: async (...given) => (await import("./commands/trust.ts")).runTrust(...given),
  mcp: async (...given) => (await import("./commands/mcp/mcp.ts")).runMcp(...given),
  config: async (_args, ...given) => (await import("./commands/config.ts")).runConfig(...given),
  async completions([shell = "", ...typed], _values, io) {
    const script = await import("./commands/completions.ts");
    if (!script.isShell(shell)) {
      throw new UsageError(`completions takes one of: ${script.SHELLS.join(", ")}.`);
    }
    if (typed.length === 0) io.stdout.write(script.completionScript(shell));
    else {
      // What the script asks: the words of a command line, of which the last is completed.
      const found = await script.completeLine(typed, {
        models: () => captureNames("models", "model", io),
        sessions: () => captureNames("sessions", "id", io),
      });
      io.stdout.write(script.formatCompletions(shell, found, typed.at(-1) ?? ""));
    }
    return EXIT.done;
  },
  async help([name, ...more], _values, io) {
    const { helpText, isCommand: isKnown } = await import("./commands/help.ts");
    if (name !== undefined && (!isKnown(name) || more.length > 0)) {
      const hint =
        (await meant(name, commandNames())) || ` The commands are ${commandNames().join(", ")}.`;
      throw new UsageError(
        `"help" takes the name of a command, not "${[name, ...more].join(" ")}".${hint}`,
      );
    }
    io.stdout.write(helpText(name));
    return EXIT.done;
  },
  async demo(_args, { fast = false, keep = false, model }, io) {
    const { runDemo } = await import("./modes/demo/demo.ts");
    const live = model === undefined ? undefined : await liveModel(model, io);
    const { env, signal } = io;
    return runDemo({ output: process.stdout, env, fast, keep, signal, ...(live && { live }) });
  },
};

/** A person sits at a terminal, and has not asked for one answer alone. */
function isInteractive({ output, print, schema }: Values, { stdin, stdout }: Io): boolean {
  const isOneAnswer = print || output !== undefined || schema !== undefined;
  return !isOneAnswer && stdin.isTTY === true && stdout.isTTY === true;
}

/** The names that a command lists. */
async function captureNames(
  command: "models" | "sessions",
  field: string,
  io: Io,
): Promise<string[]> {
  let json = "";
  const stdout = { write: (text: string) => (json += text) };
  await start[command]([], { json: true }, { ...io, stdout, stderr: { write: () => {} } });
  return (await import("./commands/completions.ts")).readNames(json, field);
}

async function liveModel(name: string, io: Io) {
  const { openModel } = await import("./modes/demo/live-model.ts");
  return openModel(name, io);
}

/** Which command is meant, and what follows it. Without a name it is `run`: the rest is the prompt. */
async function parseCommand(
  positionals: string[],
  values: Values,
  io: Io,
): Promise<{ command?: CommandName; rest: string[] }> {
  const [first, ...rest] = positionals;
  if (values.print) return { command: "run", rest: positionals };
  if (first === undefined) {
    const isResumed = values.continue || values.resume !== undefined;
    const isAsked = (!io.stdin.isTTY || isResumed || isInteractive(values, io)) && !values.help;
    return { ...(isAsked && { command: "run" }), rest: [] };
  }
  if (isTypedCommand(first)) return { command: first, rest };
  if (/\s/.test(first) || positionals.some((word) => /^@./.test(word)))
    return { command: "run", rest: positionals };
  const hint =
    (await meant(first, commandNames())) || ` The commands are ${commandNames().join(", ")}.`;
  const instead = isInteractive(values, io)
    ? "To ask that, start gyre and type it there; -p asks for one answer."
    : "A prompt of one word needs -p.";
  throw new UsageError(`Unknown command "${first}".${hint} ${instead}`);
}

function commandNames(): string[] {
  return Object.keys(COMMANDS).filter(isTypedCommand);
}

function checkOptions(command: CommandName, values: Values): void {
  const known: readonly OptionName[] = [...COMMANDS[command].options, "help", "version"];
  for (const name of Object.keys(values) as OptionName[]) {
    if (known.includes(name)) continue;
    const what = command === "run" ? "A prompt" : `"${command}"`;
    throw new UsageError(`${what} does not take --${name}.`);
  }
}

async function readArguments(typed: string[]): Promise<{ positionals: string[]; values: Values }> {
  const written =
    typed[0] === "mcp"
      ? (await import("./core/claude-code/mcp-add.ts")).translateMcpAdd(typed)
      : typed;
  const known = findKnownOptions(written);
  const isForeign = written.some((word) => word.startsWith("--") && !isOwnOption(word));
  const given = isForeign
    ? (await import("./core/claude-code/options.ts")).translateOptions(written, known)
    : written;
  const args = joinValues(given);
  const { tokens } = parseArgs({ args, options: OPTIONS, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind !== "option" || Object.hasOwn(OPTIONS, token.name)) continue;
    // An option that the command refuses is no help.
    const hint = await meant(token.name, known, "--");
    throw new UsageError(`Unknown option "${token.rawName}".${hint}`);
  }
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new UsageError(message.replaceAll("\n", " "), { cause: error });
  }
}

/** The options of the command that a command line names, or of a prompt. */
function findKnownOptions(args: readonly string[]): readonly OptionName[] {
  const { positionals, values } = parseArgs({
    args: joinValues(args),
    options: OPTIONS,
    strict: false,
    allowPositionals: true,
  });
  const [first = ""] = positionals;
  const command = !values["print"] && isTypedCommand(first) ? first : "run";
  return [...COMMANDS[command].options, "help", "version"];
}

function isOwnOption(word: string): boolean {
  const [name = ""] = word.slice(2).split("=", 1);
  return word === "--" || Object.hasOwn(OPTIONS, name);
}

/** Options whose value may be left out, by how they are written. */
const BARE: ReadonlyMap<string, string> = new Map([
  ["--verbose", "--verbose"],
  ["--resume", "--resume"],
  ["-r", "--resume"],
]);

/**
 * Joins values to their options where `parseArgs` cannot know them: none after `--verbose`, and
 * `-git` after `--tools`.
 */
function joinValues(args: readonly string[]): string[] {
  const joined: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    const next = args[at + 1];
    if (word === "--") return [...joined, ...args.slice(at)];
    if (word === "--tools" && next !== undefined && /^-[a-z]{2}/.test(next)) {
      joined.push(`${word}=${next}`);
      at++;
    } else if (BARE.has(word) && (next === undefined || /^-./.test(next))) {
      joined.push(`${BARE.get(word)}=`);
    } else joined.push(word);
  }
  return joined;
}

async function meant(name: string, known: readonly string[], prefix = ""): Promise<string> {
  const { nearNames } = await import("@gyre/ai");
  const near = nearNames(name, known).map((each) => `"${prefix}${each}"`);
  return near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
}

/**
 * The first signal asks `run` to end, which then ends with its code; a second one does not
 * wait. A reader such as `head` that has seen enough ends the run as well, and is
 * no failure. Any other error of stdout is one.
 */
async function withSignals(
  run: (ends: Pick<Io, "signal" | "handleInterrupt">) => Promise<ExitCode>,
): Promise<ExitCode> {
  let interrupt: (() => boolean) | undefined;
  const controller = new AbortController();
  const ending: { reason?: ExitError; at: number; isOver: boolean } = { at: 0, isOver: false };
  const stop = (reason: ExitError): void => {
    ending.reason = reason;
    ending.at = performance.now();
    controller.abort(reason);
  };
  for (const [name, number] of Object.entries(SIGNALS)) {
    process.on(name, () => {
      const { at, isOver, reason } = ending;
      if (name === "SIGINT" && !reason && interrupt?.()) return;
      // Only the rest of stdout is left to be read.
      if (isOver) process.exit(SIGNAL_BASE + number);
      if (!reason) stop(new ExitError(SIGNAL_BASE + number, "Interrupted."));
      else if (performance.now() - at > SAME_PRESS_MS) process.exit(reason.exitCode);
    });
  }
  process.stdout.on("error", (cause: NodeJS.ErrnoException) => {
    if (ending.reason) return;
    // The terminal is gone: its signal is about to arrive.
    if (cause.code === "EIO" && process.stdout.isTTY) {
      return stop(new ExitError(SIGNAL_BASE + SIGNALS.SIGHUP, "Interrupted."));
    }
    const isLeft = cause.code === "EPIPE";
    const message = `stdout cannot be written to: ${cause.message}`;
    const error = new OutputError(isLeft ? EXIT.done : EXIT.failed, message, { cause });
    if (!isLeft) reportError(error);
    stop(error);
  });
  // Without a reader of stderr there is no place to report that.
  process.stderr.on("error", () => {});
  // By default Node prints two lines about itself for each.
  process.removeAllListeners("warning");
  process.on("warning", (warning) => {
    // That a part of Node is new is nothing that a user can act on.
    if (warning.name !== "ExperimentalWarning") reportError(warning);
  });
  try {
    const result = await run({
      signal: controller.signal,
      handleInterrupt(handler) {
        interrupt = handler;
        return () => {
          if (interrupt === handler) interrupt = undefined;
        };
      },
    });
    return ending.reason?.exitCode ?? result;
  } catch (error) {
    if (!(ending.reason instanceof OutputError)) reportError(error);
    return ending.reason?.exitCode ?? toExitCode(error);
  } finally {
    ending.isOver = true;
  }
}

function reportError(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  const hint = error instanceof UsageError ? "\nSee gyre --help." : "";
  process.stderr.write(`gyre: ${text}${hint}\n`);
}

function startFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    const message = "The folder that this was started in is gone. Change to one that is there.";
    throw new ExitError(EXIT.failed, message, { cause: error });
  }
}

let isForeignCodeLoaded = false;
const code = await withSignals((ends) =>
  main(process.argv.slice(2), {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: startFolder(),
    onForeignCode: () => (isForeignCodeLoaded = true),
    ...ends,
  }),
);
process.exitCode = code;
if (code === EXIT.timeout || code > SIGNAL_BASE) {
  setTimeout(() => process.exit(), PATIENCE_MS).unref();
}

// What a plugin has left open does not keep us, once all is written.
if (isForeignCodeLoaded) {
  const leave = (): void => {
    if (process.stdout.writableLength === 0) process.exit();
  };
  setInterval(leave, LEAVING_MS).unref();
}
