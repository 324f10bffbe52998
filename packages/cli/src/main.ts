#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { LiveModel } from "./live-model.ts";

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
/** A signal within this time after the first is the same key press, handed on by npm or a shell. */
const SAME_PRESS_MS = 300;
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

const COMMANDS = ["demo"];
const OPTIONS = {
  fast: { type: "boolean" },
  help: { type: "boolean", short: "h" },
  keep: { type: "boolean" },
  model: { type: "string", short: "m" },
  version: { type: "boolean", short: "v" },
} as const;

const HELP = `Usage: gyre <command> [options]

Commands
  demo             watch the agent loop mend a small project:
                   a scripted model, real tools; no key, no network

Options of demo
      --fast       without delays
      --keep       leave the project's folder in place
  -m, --model M    let a real model do it: a name ("sonnet"), or service/id;
                   key and address come from the environment or the key file

Options
  -h, --help       show this
  -v, --version    show the version

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 aborted
`;

/** What is wrong with the command line, told to the person who wrote it. */
class UsageError extends Error {}

/** Runs a command line. Everything a command needs is loaded when it is asked for. */
async function main(args: string[]): Promise<number> {
  const { positionals, values } = await readArguments(args);
  if (values.version) {
    process.stdout.write(`${version()}\n`);
    return 0;
  }
  const [command, ...rest] = positionals;
  if (values.help || command === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  if (!COMMANDS.includes(command)) {
    const hint = (await meant(command, COMMANDS)) || ` There is: ${COMMANDS.join(", ")}.`;
    throw new UsageError(`Unknown command "${command}".${hint}`);
  }
  if (rest.length > 0) throw new UsageError(`"${command}" takes no argument "${rest[0]}".`);
  const { runDemo } = await import("./demo.ts");
  const live = values.model === undefined ? undefined : await liveModel(values.model);
  return withSignals((signal) =>
    runDemo({
      output: process.stdout,
      env: process.env,
      fast: values.fast ?? false,
      keep: values.keep ?? false,
      signal,
      ...(live && { live }),
    }),
  );
}

async function liveModel(name: string): Promise<LiveModel> {
  const { openModel } = await import("./live-model.ts");
  try {
    return openModel(name, process.env);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

type Arguments = ReturnType<typeof parseStrictly>;

async function readArguments(args: string[]): Promise<Arguments> {
  const { tokens } = parseArgs({ args, options: OPTIONS, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind !== "option" || token.name in OPTIONS) continue;
    const hint = await meant(token.name, Object.keys(OPTIONS), "--");
    throw new UsageError(`Unknown option "${token.rawName}".${hint}`);
  }
  try {
    return parseStrictly(args);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function parseStrictly(args: string[]) {
  return parseArgs({ args, options: OPTIONS, allowPositionals: true });
}

async function meant(name: string, known: readonly string[], prefix = ""): Promise<string> {
  const { nearNames } = await import("@gyre/ai");
  const near = nearNames(name, known).map((each) => `"${prefix}${each}"`);
  return near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
}

function version(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  );
  return manifest.version;
}

/** The first signal asks `run` to end, which then ends with its code; a second one does not wait. */
async function withSignals(run: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const controller = new AbortController();
  let abortedAt = 0;
  let code: number | undefined;
  for (const [name, number] of Object.entries(SIGNALS)) {
    process.on(name, () => {
      if (code === undefined) {
        code = 128 + number;
        abortedAt = performance.now();
        controller.abort();
      } else if (performance.now() - abortedAt > SAME_PRESS_MS) process.exit(code);
    });
  }
  const result = await run(controller.signal);
  return code ?? result;
}

// Who reads us through `head` has seen enough: that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const usage = error instanceof UsageError;
  const text = usage ? `${error.message}\nSee gyre --help.` : String(error);
  process.stderr.write(`gyre: ${text}\n`);
  process.exitCode = usage ? EXIT_USAGE : EXIT_FAILED;
}
