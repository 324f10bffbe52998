import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, scriptedModel, type ScriptAnswer } from "@gyre/ai/testing";
import { defineCodingAgent, type DurableCodingAgent } from "@gyre/coding";

/** A folder to work in, with a home of its own. */
export interface World {
  readonly home: string;
  readonly cwd: string;
  /** The address of a store in a file. */
  readonly url: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  remove(): void;
}

export function createWorld(): World {
  return openWorld(mkdtempSync(join(tmpdir(), "gyre-durable-coding-")));
}

/** The same, in another process. */
export function openWorld(home: string): World {
  const cwd = join(home, "project");
  mkdirSync(cwd, { recursive: true });
  return {
    home,
    cwd,
    url: `file:${join(home, "runs.db")}`,
    env: {
      PATH: process.env["PATH"],
      HOME: home,
      XDG_STATE_HOME: join(home, "state"),
      XDG_CONFIG_HOME: join(home, "config"),
    },
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** The answers of a model, by how many answers the transcript has already. */
export type Script = readonly (ScriptAnswer | ((messages: string) => ScriptAnswer))[];

/** The coding agent with a scripted model. Another worker may have got the first answers. */
export function scriptedCodingAgent(
  { env }: World,
  script: Script,
  more: NonNullable<Parameters<typeof defineCodingAgent>[0]> = {},
): DurableCodingAgent {
  const model = scriptedModel(
    ({ messages }) => {
      const count = messages.filter(({ role }) => role === "assistant").length;
      const answer = script[count] ?? "More.";
      return typeof answer === "function" ? answer(JSON.stringify(messages)) : answer;
    },
    { keepCalls: false },
  );
  return defineCodingAgent({
    ...{ model: model.model, protocol: model, env, sandbox: "none", onWarning: () => {} },
    permissions: { mode: "full" },
    ...more,
  });
}

/** What a worker in a process of its own gets. */
export interface CodingWorkerOptions {
  readonly home: string;
  readonly url: string;
  readonly pool: string;
  readonly script: ScriptName;
}

export const LINES = 12;

/** Commands of which each says in a file that it has run. */
const lines: Script = [
  ...Array.from({ length: LINES }, (_, at) =>
    call("shell", { command: `echo ${at} >> lines` }, `line-${at}`),
  ),
  "Done.",
];

/** A job, a command that takes longer than its worker lives, and a look at both. */
const long: Script = [
  call("shell", { command: "echo one >> log; sleep 1000", background: true }, "job"),
  call("write", { path: "kept.txt", content: "As it was.\n" }, "write"),
  call("shell", { command: "echo two >> log; touch begun; sleep 1000" }, "begun"),
  (messages) => call("jobs", { action: "read", id: findJob(messages) }, "look"),
  "Done.",
];

export type ScriptName = "lines" | "long";
export const SCRIPTS: Readonly<Record<ScriptName, Script>> = { lines, long };

function findJob(messages: string): string {
  return /job-[\w-]+/.exec(messages)?.[0] ?? "";
}
