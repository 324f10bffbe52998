import { rmSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, type AgentEvent, type AgentTool, type Middleware } from "@gyre/agent";
import { type Clock, totalTokens } from "@gyre/ai";
import { scriptedModel, type ScriptedModelOptions } from "@gyre/ai/testing";
import { PROVENANCE_NOTE } from "@gyre/tools";
import { PROJECT_FILES, TASK, TEST_COMMAND } from "./project.ts";
import { demoScript } from "./script.ts";
import { type DemoTools, openDemoTools } from "./tools.ts";
import { dollars } from "../../text/dollars.ts";
import type { LiveModel } from "./live-model.ts";
import { duration } from "../../text/tool-text.ts";
import type { Environment } from "../../core/io.ts";
import type { Output } from "../../core/terminal.ts";
import { DemoScreen } from "./screen.ts";

export const EXIT_FIXED = 0;
export const EXIT_NOT_FIXED = 1;
export const EXIT_ABORTED = 130;

const OWNER_ONLY = 0o700;

/** As fast as one can just read along. */
const TYPING: ScriptedModelOptions = { delayMs: 700, chunkSize: 3, betweenMs: 26 };

export interface DemoOptions {
  output: Output;
  env: Environment;
  /** No delays. There are none in CI and on anything but a terminal either. */
  fast?: boolean;
  /** Leaves the folder when all is done. */
  keep?: boolean;
  signal?: AbortSignal;
  /** For the delays of the scripted model. */
  clock?: Clock;
  /** A model of a service, in place of the scripted one. */
  live?: LiveModel;
  /** Gives the tools that are used; it is given the demo's own. */
  tools?: (own: readonly AgentTool[], folder: string) => readonly AgentTool[];
}

/**
 * Lets a model, a scripted one unless another is given, fix a small project with real
 * tools, shows it, and returns how it ended as an exit code. The folder is gone
 * afterwards, unless it was to be kept.
 */
export async function runDemo(options: DemoOptions): Promise<number> {
  const { env, keep = false, live, output, signal } = options;
  const startedAt = performance.now();
  const folder = await mkdtemp(join(await realpath(tmpdir()), "gyre-demo-"));
  const stateFolder = `${folder}-state`;
  const screen = new DemoScreen(output, env, folder);
  const { theme } = screen;
  const passing = keep ? [stateFolder] : [folder, stateFolder];
  // Where the process is made to end at once, nothing else would take the folders away.
  const removeAtExit = (): void => {
    for (const each of passing) rmSync(each, { recursive: true, force: true });
  };
  process.once("exit", removeAtExit);

  const outcome = new Outcome();
  let own: DemoTools | undefined;
  try {
    await mkdir(stateFolder, { mode: OWNER_ONLY });
    for (const [name, text] of Object.entries(PROJECT_FILES)) {
      await writeFile(join(folder, name), text);
    }
    own = await openDemoTools(folder, stateFolder);
    screen.say("gyre demo", theme.strong);
    screen.say(
      live
        ? `The model is ${live.model.name} at ${live.service}. It may read, edit and run the tests in the folder below, nothing else.`
        : "The model here is scripted: no key, no network. The tools, the files and the test runs are real.",
    );
    screen.say(`Folder: ${folder}\n${sandboxLine(own.sandbox)}`, theme.dim);
    const tools = options.tools?.(own.tools, folder) ?? own.tools;
    await runAgent(tools, options, (event) => {
      outcome.take(event);
      screen.handle(event);
    });
  } finally {
    await own?.close();
    for (const each of passing) await rm(each, { recursive: true, force: true, maxRetries: 3 });
    process.removeListener("exit", removeAtExit);
  }

  const place = keep ? `Kept: ${folder}` : "The folder is removed; --keep leaves it.";
  if (signal?.aborted) {
    screen.say("Aborted.", theme.warning);
    screen.say(place);
    screen.end();
    return EXIT_ABORTED;
  }
  const { isFixed, turns, calls } = outcome;
  screen.say(
    isFixed
      ? "✔ Fixed: the tests failed before, and pass now."
      : "✗ Not fixed: the tests did not go from failing to passing.",
    isFixed ? theme.good : theme.bad,
  );
  const elapsed = duration(performance.now() - startedAt);
  screen.say(`${turns} turns · ${calls} tool calls · ${elapsed}${outcome.spent}`, theme.dim);
  if (!live) {
    screen.say("The model was scripted; the tools, the files and the test runs were real.");
  }
  screen.say(place);
  screen.say("Try next", theme.strong);
  screen.say(nextSteps(env).join("\n"));
  screen.end();
  return isFixed ? EXIT_FIXED : EXIT_NOT_FIXED;
}

/** In the repository, where npm has started this, there is more to look at. */
function nextSteps(env: Environment): string[] {
  if (env["npm_lifecycle_event"] === "start") {
    return ["npm test   the library's own tests", "docs/      make an agent of your own"];
  }
  return [
    "gyre login SERVICE   store the key of a service, such as anthropic",
    'gyre -p "..."        have it work in the folder that you are in',
  ];
}

function sandboxLine(kind: DemoTools["sandbox"]): string {
  return kind === "none"
    ? "Sandbox: none works here. Commands run with your own rights."
    : `Sandbox: ${kind}. Commands change this folder alone, without network.`;
}

async function runAgent(
  tools: readonly AgentTool[],
  { clock, env, fast, live, output, signal }: DemoOptions,
  listener: (event: AgentEvent) => void,
): Promise<void> {
  if (signal?.aborted) return;
  const watched = !fast && output.isTTY === true && !env["CI"];
  const script = scriptedModel(demoScript, { ...(watched && TYPING), ...(clock && { clock }) });
  const agent = new Agent({
    protocol: live?.client ?? script,
    model: live?.model ?? script.model,
    tools,
    ...(live && { instructions: INSTRUCTIONS }),
    ...(live && { middleware: [onlyTests], limits: LIVE_LIMITS }),
    // A screen that cannot be written to is no small thing here: it is all there is.
    sink: listener,
  });
  const abort = (): void => agent.abort();
  signal?.addEventListener("abort", abort, { once: true });
  try {
    await agent.prompt(TASK);
    await agent.waitForIdle();
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

const INSTRUCTIONS = `You fix a small project with the tools you have. Its tests are run with exactly this command: ${TEST_COMMAND}
Run them before you change anything and after; no other command is allowed. Say briefly what you do and why.

${PROVENANCE_NOTE}`;

const LIVE_LIMITS = { maxTurns: 20 };

/** No person watches what a real model runs here: it may run the tests, and nothing else. */
const onlyTests: Middleware = {
  async tool(call, next) {
    if (call.tool.name !== "shell") return next();
    const { command, unsandboxed } = call.args;
    if (command !== TEST_COMMAND) {
      throw new Error(`This demo runs no other command than: ${TEST_COMMAND}`);
    }
    if (unsandboxed !== undefined) {
      throw new Error("This demo runs nothing outside of its sandbox. Leave unsandboxed out.");
    }
    return next();
  },
};

/** What really happened, from the events alone and not from what the model said of it. */
class Outcome {
  turns = 0;
  calls = 0;
  #testRuns: boolean[] = [];
  #done = false;
  #cost: number | undefined;
  #tokens = 0;

  take(event: AgentEvent): void {
    if (event.type === "tool_execution_end") {
      this.calls++;
      if (event.toolName === "shell") this.#testRuns.push(!event.isError);
    } else if (event.type === "agent_end") {
      this.turns = event.turns;
      this.#done = event.stop === "done";
      this.#cost = event.usage.cost?.total;
      this.#tokens = totalTokens(event.usage);
    }
  }

  /** What a service counted; the scripted model counts nothing. */
  get spent(): string {
    if (this.#tokens === 0) return "";
    const cost = this.#cost === undefined ? "price unknown" : dollars(this.#cost);
    return ` · ${this.#tokens} tokens · ${cost}`;
  }

  get isFixed(): boolean {
    return this.#done && this.#testRuns[0] === false && this.#testRuns.at(-1) === true;
  }
}
