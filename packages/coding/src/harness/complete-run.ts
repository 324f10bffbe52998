import {
  type AgentEnd,
  type AgentEndEvent,
  type AgentMessage,
  type AgentRun,
  type ContinueOptions,
  listCalls,
  type Limits,
  type PromptInput,
} from "@gyre/agent";
import { type AnySchema, type StopReason, addUsage, type Usage, errorMessage } from "@gyre/ai";
import type { Extensions } from "../extensions/extensions.ts";
import type { SessionLog } from "./session/session-log.ts";
import type { Settings } from "../settings/settings.ts";
import type { AbortableAgent } from "../extensions/abortable-agent.ts";
import type { Outcome } from "../conversation/types.ts";
import type { Accounts } from "./session/accounts.ts";

/** How a run of a harness is ended from outside, and what a person decided before it. */
export type RunControl = Pick<ContinueOptions, "signal" | "decisions">;

/** How a prompt ended, with the answer of its last run. */
export interface HarnessOutcome extends Outcome {
  end: AgentEnd<unknown>;
}

/** What runs of a prompt need of the harness. */
export interface RunParts {
  agent: AbortableAgent;
  /** Read by each run as it starts: what a prompt has used is deducted between its runs. */
  limits: Limits;
  log: SessionLog;
  accounts: Accounts;
  extensions: Extensions | undefined;
}

/** Runs an agent on what a prompt says, and again as long as hooks want something done. */
export class CompleteRuns {
  readonly #parts: RunParts;

  constructor(parts: RunParts) {
    this.#parts = parts;
  }

  start(
    input: PromptInput,
    output: AnySchema | undefined,
    control: RunControl,
  ): Promise<HarnessOutcome> {
    return this.#complete(this.#run(input, output, control), output, control);
  }

  resume(output: AnySchema | undefined, control: RunControl): Promise<HarnessOutcome> {
    const { agent } = this.#parts;
    const run = output ? agent.continueRun({ ...control, output }) : agent.continueRun(control);
    return this.#complete(detached(run), output, control);
  }

  #run(
    input: PromptInput,
    output: AnySchema | undefined,
    { signal }: RunControl,
  ): AgentRun<unknown> {
    const { agent } = this.#parts;
    const options = signal ? { signal } : {};
    return detached(output ? agent.run(input, { ...options, output }) : agent.run(input, options));
  }

  async #complete(
    first: AgentRun<unknown>,
    output: AnySchema | undefined,
    control: RunControl,
  ): Promise<HarnessOutcome> {
    const { accounts, limits, log } = this.#parts;
    const whole = { ...limits };
    log.error = undefined;
    let run = first;
    let turns = 0;
    let usage: Usage = {};
    try {
      for (;;) {
        const end = await run.result();
        turns += end.turns;
        let used = addUsage(end.usage, accounts.takeOutsideRuns());
        const more = await this.#runStopHooks(end);
        used = addUsage(used, accounts.takeOutsideRuns());
        usage = addUsage(usage, used);
        if (more === undefined || !deduct(limits, end.turns, used)) {
          const { error } = log;
          return {
            end,
            turns,
            usage,
            spending: accounts.takeSpending(),
            ...(output && (await readAnswer(run))),
            ...(error !== undefined && { sessionError: error }),
          };
        }
        run = this.#run(more, output, control);
      }
    } finally {
      Object.assign(limits, whole);
    }
  }

  /** What a hook wants done before the agent may stop. */
  async #runStopHooks(end: AgentEndEvent): Promise<string | undefined> {
    const { agent, extensions } = this.#parts;
    if (!extensions || end.stop !== "done") return undefined;
    return agent.runAbortable((signal) => extensions.stop(signal));
  }
}

/** Listeners and the sink get the events: none have to be kept for a reader. */
function detached(run: AgentRun<unknown>): AgentRun<unknown> {
  run.detach();
  return run;
}

/** Whether a conversation stops in the middle: at a question or a result without an answer. */
export function isCutOff(messages: readonly AgentMessage[]): boolean {
  const last = messages.findLast(
    (message) =>
      message.role !== "userCommand" &&
      message.role !== "notice" &&
      (message.role !== "assistant" || isComplete(message.stopReason)),
  );
  if (!last) return false;
  if (last.role !== "assistant" || last.stopReason === "pause") return true;
  return listCalls(last).length > 0;
}

/** Whether the answer is complete. */
function isComplete(reason: StopReason): boolean {
  return reason !== "error" && reason !== "aborted" && reason !== "redirected";
}

export function createLimits({ maxCost, maxTurns = Infinity }: Settings): Limits {
  return {
    maxTurns,
    ...(maxCost !== undefined && { maxCostUsd: maxCost }),
  };
}

/** Deducts what was used. Answers whether anything is left. */
function deduct(limits: Limits, turns: number, usage: Usage): boolean {
  if (limits.maxTurns !== undefined) limits.maxTurns -= turns;
  if (limits.maxCostUsd !== undefined) limits.maxCostUsd -= usage.cost?.total ?? 0;
  return Object.values(limits).every((left: number) => left > 0);
}

async function readAnswer(
  run: AgentRun<unknown>,
): Promise<Pick<Outcome, "output" | "outputError">> {
  try {
    return { output: await run.output() };
  } catch (error) {
    return { outputError: errorMessage(error) };
  }
}
