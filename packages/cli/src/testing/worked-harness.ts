import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Harness,
  type HarnessOptions,
  openHarness,
} from "@gyre/coding/internal/harness/harness";
import type { Session } from "@gyre/sessions";
import { scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { afterEach, beforeEach } from "vitest";
import { openStore } from "../core/setup.ts";

/** A folder and agents in it, whose answers are scripted; both are gone after each test. */
export interface WorkedHarness {
  readonly work: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A program in which these prompts were answered by these steps, in a new session or in this one. */
  worked(
    prompts: readonly string[],
    steps: readonly ScriptStep[],
    options?: { fileHistory?: boolean; session?: Session },
  ): Promise<Harness>;
  /** An agent with these answers in a folder and a session, whatever else it is opened with. */
  openIn(
    place: Pick<HarnessOptions, "cwd"> & Partial<HarnessOptions>,
    steps: readonly ScriptStep[],
  ): Promise<Harness>;
  /** A file of the folder. */
  read(name: string): Promise<string>;
}

export function workedHarness(): WorkedHarness {
  const made = { state: "", work: "" };
  const harnesses: Harness[] = [];
  beforeEach(async () => {
    made.state = await mkdtemp(join(tmpdir(), "gyre-state-"));
    made.work = await realpath(await mkdtemp(join(tmpdir(), "gyre-work-")));
  });
  afterEach(async () => {
    for (const harness of harnesses.splice(0)) await harness.close();
    await rm(made.state, { recursive: true, force: true });
    await rm(made.work, { recursive: true, force: true });
  });
  const world: WorkedHarness = {
    get work() {
      return made.work;
    },
    get env() {
      return { XDG_STATE_HOME: made.state, HOME: made.state, PATH: process.env["PATH"] };
    },
    async openIn(place, steps) {
      const script = scriptedModel([...steps]);
      const harness = await openHarness({
        settings: { tools: ["write", "shell"], sandbox: "none", mode: "full" },
        env: world.env,
        approvals: "deny",
        warn: () => {},
        fileHistory: true,
        ...place,
        models: {
          client: script,
          fallbacks: [],
          current: () => Promise.resolve(script.model),
          find: (name) =>
            name === script.model.id
              ? Promise.resolve(script.model)
              : Promise.reject(new Error(`No model fits "${name}".`)),
          list: () => Promise.resolve([script.model]),
        },
      });
      harnesses.push(harness);
      return harness;
    },
    async worked(prompts, steps, { fileHistory = true, session } = {}) {
      const { env, work } = world;
      const store = await openStore({ env });
      const from = session ? { session } : { newSession: () => store.create({ cwd: work }) };
      const harness = await world.openIn({ cwd: work, fileHistory, ...from }, steps);
      for (const text of prompts) await harness.prompt({ text });
      return harness;
    },
    read: (name) => readFile(join(made.work, name), "utf8"),
  };
  return world;
}
