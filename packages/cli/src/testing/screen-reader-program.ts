import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { scriptedModel, scriptedModelInfo, type ScriptStep } from "@gyre/ai/testing";
import type { Models } from "@gyre/coding/internal/models/models";
import type { Values } from "../core/options.ts";
import type { ExitCode } from "../core/exit-codes.ts";
import { runScreenReader } from "../modes/screen-reader/screen-reader.ts";
import { AgentOpener, type FirstSetup, readFirstSetup } from "../modes/tui/start/agent-opener.ts";
import type { CreateOpener } from "../modes/tui/start/opener.ts";
import { version } from "@gyre/coding/internal/core/version";
import { textIo } from "./command-io.ts";
import { LineDriver } from "./line-driver.ts";

/** What a terminal would obey, or could not show. */
// oxlint-disable-next-line no-control-regex
const OBEYED = /[\x00-\x08\x0b-\x1f\x7f\x9b]/;
/** Longer than any test: nothing waits for it. */
const NEVER_MS = 600_000;

/** What every conversation begins with, as `seen` has it. */
export const BANNER: string =
  "This is gyre VERSION with the model in WORK. /help lists the commands.\nYou: ";

export interface ScreenReaderRun {
  driver: LineDriver;
  code: Promise<number>;
  /** All that one sees, with what differs from run to run made the same. */
  seen: () => string;
  /** The time that the program has. */
  clock: { now: number };
  /** Ctrl-C: whether the program handles it. Undefined: it would be ended by it. */
  interrupt: () => boolean | undefined;
}

export interface ScreenReaderRunOptions {
  values?: Values;
  prompt?: string;
  /** Without one, the program has to ask. Default: true. */
  hasModels?: boolean;
}

/** A folder of its own, and the program for a screen reader in it with a scripted model. */
export class ScreenReaderWorld {
  readonly #base = realpathSync(mkdtempSync(join(tmpdir(), "gyre-screen-reader-")));
  readonly #runs: ScreenReaderRun[] = [];
  /** The folder that is worked in. */
  readonly work: string = join(this.#base, "work");

  constructor() {
    mkdirSync(this.work);
  }

  start(script: readonly ScriptStep[], options: ScreenReaderRunOptions = {}): ScreenReaderRun {
    const { values = {}, prompt, hasModels = true } = options;
    const driver = new LineDriver();
    const clock = { now: 0 };
    const env = {
      PATH: process.env["PATH"],
      SHELL: "/bin/sh",
      XDG_STATE_HOME: join(this.#base, "state"),
      XDG_CONFIG_HOME: join(this.#base, "config"),
      GYRE_FAST: "1",
    };
    let handler: (() => boolean) | undefined;
    const handleInterrupt = (given: () => boolean) => {
      handler = given;
      return () => {
        handler = undefined;
      };
    };
    const io = textIo({ cwd: this.work, env, handleInterrupt });
    const given = { sandbox: "none", ...values };
    const models = hasModels && { models: createModels(script) };
    const start = (first: FirstSetup): Promise<ExitCode> => {
      const createOpener: CreateOpener = (place) =>
        new AgentOpener({ values: given, io, first, ...place, ...models });
      const { setup } = first;
      return runScreenReader(
        prompt === undefined ? [] : [prompt],
        { io, setup, createOpener },
        driver,
        {
          now: () => clock.now,
          after: (_ms, run) => {
            const timer = setTimeout(run, NEVER_MS);
            return () => clearTimeout(timer);
          },
          turn: () => Promise.resolve(),
        },
      );
    };
    const code = readFirstSetup(given, io).then(start);
    const seen = (): string =>
      driver.seen
        .replaceAll(this.work, "WORK")
        .replaceAll(version(), "VERSION")
        .replace(/, \d+\.\d seconds\.$/gm, ", TIME.")
        .replace(/--resume \S+/g, "--resume ID");
    const run = { driver, code, seen, clock, interrupt: () => handler?.() };
    this.#runs.push(run);
    return run;
  }

  /** Ends all that still runs. Throws where a byte was written that a terminal obeys. */
  async close(): Promise<void> {
    for (const { driver, code } of this.#runs) {
      driver.input.end();
      await code.catch(() => {});
      if (OBEYED.test(driver.written))
        throw new Error(`This was written: ${JSON.stringify(driver.written)}`);
    }
    rmSync(this.#base, { recursive: true, force: true });
  }
}

function createModels(script: readonly ScriptStep[]): Models {
  const client = scriptedModel(script, { keepCalls: false });
  const model = { ...scriptedModelInfo, name: "the model" };
  return {
    client,
    fallbacks: [],
    current: () => Promise.resolve(model),
    find: () => Promise.resolve(model),
    list: () => Promise.resolve([model]),
  };
}
