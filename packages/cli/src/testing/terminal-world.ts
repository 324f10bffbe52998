import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, afterEach, beforeAll } from "vitest";
import { QUIET_MS } from "../modes/tui/panels/quiet-time.ts";
import { buildProgram, type Program } from "./program.ts";
import { type Script, type ScriptedService, scriptedService } from "./scripted-service.ts";
import { openInTerminal, type TerminalOptions, type TerminalRun } from "./terminal-program.ts";

export interface Opened {
  run: TerminalRun & { readonly home: string };
  service: ScriptedService;
}

export interface OpenOptions extends TerminalOptions {
  args?: readonly string[];
  /** Put into the folder before. */
  files?: Readonly<Record<string, string>>;
  /** What is in sight when it is open. Default: its first line. */
  shows?: string;
}

export interface TerminalWorld {
  readonly program: Program;
  /** Done after the test, the last first. */
  readonly cleanUps: (() => Promise<unknown>)[];
  /** The program with its first line in sight, in a folder of its own. */
  readonly open: (script: Script, options?: OpenOptions) => Promise<Opened>;
}

/** The built program for the tests of a file, each in a terminal and a folder of its own. */
export function terminalWorld(): TerminalWorld {
  const built: { program?: Program } = {};
  beforeAll(async () => {
    built.program = await buildProgram();
  });
  afterAll(() => built.program?.remove());
  const cleanUps: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
  });
  const world: TerminalWorld = {
    cleanUps,
    get program() {
      if (!built.program) throw new Error("It is not built yet.");
      return built.program;
    },
    async open(script, { args = [], files = {}, shows, ...options } = {}) {
      const service = await scriptedService(script);
      cleanUps.push(() => service.close());
      const home = options.home ?? (await world.program.makeHome());
      const cwd = options.cwd ?? join(home, "shop");
      mkdirSync(cwd, { recursive: true });
      for (const [name, text] of Object.entries(files)) {
        mkdirSync(dirname(join(cwd, name)), { recursive: true });
        writeFileSync(join(cwd, name), text);
      }
      const place = { service, rows: 20, ...options, home, cwd };
      const run = await openInTerminal(world.program, args, place);
      cleanUps.push(() => {
        run.kill();
        return run.end;
      });
      await run.until(shows ?? /gyre \d/);
      return { run, service };
    },
  };
  return world;
}

export function ask(run: TerminalRun, prompt: string): void {
  run.type(prompt);
  run.press("enter");
}

/**
 * Answers a question that is in sight, with one key. It was shown before it was seen here, so a key that comes that
 * much later is an answer; a second one would go into the prompt that follows.
 */
export async function answerOnce(run: TerminalRun, key: string, until: string): Promise<void> {
  await setTimeout(QUIET_MS + 100);
  run.type(key);
  await run.until(until);
}

/**
 * Answers a question that may come. It takes no answer before a person can have read it, so the key is pressed again,
 * and may be in the prompt that follows.
 */
export async function decide(run: TerminalRun, key: string, until: string): Promise<void> {
  const again = setInterval(() => run.type(key), QUIET_MS + 100);
  try {
    await run.until(until);
  } finally {
    clearInterval(again);
  }
}
