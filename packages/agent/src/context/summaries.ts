import type { Compaction, ContextConfig } from "./compaction.ts";
import { messageOf } from "../run/emitter.ts";
import type { Run } from "../run/run.ts";
import type { AgentMessage } from "../contract/types.ts";

export const DEFAULT_SUMMARY_WAIT_MS = 30_000;

/** What came of asking for a summary. */
export interface Summary {
  summary?: string;
  /** Why there is none. */
  why?: string;
}

/** A summary of the turns behind `base` up to `messages[to]`. */
interface Job {
  base: Compaction | undefined;
  to: number;
  given: Promise<Summary>;
  isReady: () => boolean;
  stop: () => void;
}

/** Finished ones, by the last message that they are about: for the next run, too. */
const finished = new WeakMap<AgentMessage, { base: Compaction | undefined; summary: string }>();

/** The summary that a run has asked for before it is needed. */
export class Summaries {
  #job: Job | undefined;

  /** How far one was asked for on top of what is in force, and whether it is there. */
  asked(
    messages: readonly AgentMessage[],
    base: Compaction | undefined,
    start: number,
  ): { to: number; isReady: boolean } | undefined {
    if (this.#job && this.#job.base !== base) this.stop();
    this.#job ??= found(messages, base, start);
    return this.#job && { to: this.#job.to, isReady: this.#job.isReady() };
  }

  /** Asks for one, and does not wait for it. */
  begin(
    messages: readonly AgentMessage[],
    base: Compaction | undefined,
    to: number,
    ask: (signal: AbortSignal) => string | Promise<string>,
  ): void {
    this.stop();
    const controller = new AbortController();
    const last = messages[to - 1];
    let state: "running" | "ready" | "failed" = "running";
    const given = (async (): Promise<Summary> => {
      try {
        const summary = await ask(controller.signal);
        if (last) finished.set(last, { base, summary });
        state = "ready";
        return { summary };
      } catch (error) {
        state = "failed";
        return { why: messageOf(error) };
      }
    })();
    const stop = (): void => {
      if (state === "running") controller.abort();
    };
    this.#job = { base, to, given, isReady: () => state === "ready", stop };
  }

  /** The one that was asked for, once it is there or has been waited for long enough. */
  async take(run: Run, config: ContextConfig): Promise<Summary> {
    const job = this.#job;
    if (!job) return {};
    try {
      return await within(run, config, job.given);
    } finally {
      this.stop();
    }
  }

  /** Lets go of it, and stops it if it is not finished. */
  stop(): void {
    this.#job?.stop();
    this.#job = undefined;
  }
}

/** One that an earlier run has left. */
function found(
  messages: readonly AgentMessage[],
  base: Compaction | undefined,
  start: number,
): Job | undefined {
  for (let to = messages.length; to > start; to--) {
    const left = finished.get(messages[to - 1] as AgentMessage);
    if (!left || left.base !== base) continue;
    const given = Promise.resolve({ summary: left.summary });
    return { base, to, given, isReady: () => true, stop: () => {} };
  }
  return undefined;
}

/** Asks for a summary, and waits for it as long as is allowed. Throws where the run is stopped. */
export async function summaryWithin(
  run: Run,
  config: ContextConfig,
  ask: (signal: AbortSignal) => string | Promise<string>,
): Promise<Summary> {
  const controller = new AbortController();
  try {
    const asked = (async (): Promise<Summary> => ({ summary: await ask(controller.signal) }))();
    const given = await within(run, config, asked);
    if (given.summary === undefined) controller.abort();
    return given;
  } catch (error) {
    controller.abort();
    throw error;
  }
}

async function within(run: Run, config: ContextConfig, given: Promise<Summary>): Promise<Summary> {
  const ms = config.summaryWaitMs ?? DEFAULT_SUMMARY_WAIT_MS;
  let cut: () => void = () => {};
  const late = run
    .wait(ms, (give) => (cut = give))
    .then((): Summary => ({ why: `It did not come within ${ms} ms.` }));
  try {
    return await run.hook("summarise", () => Promise.race([given, late]));
  } finally {
    cut();
  }
}
