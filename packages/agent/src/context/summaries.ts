import { errorMessage } from "@gyre/ai";
import type { Compaction, ContextConfig } from "../contract/compaction.ts";
import type { AgentMessage } from "../contract/types.ts";
import type { ContextHost } from "./host.ts";
import type { ContextMemory } from "./memory.ts";

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

/** A summary that a run has asked for, mostly before it is needed. */
export class Summaries {
  readonly #memory: ContextMemory;
  #job: Job | undefined;

  constructor(memory: ContextMemory) {
    this.#memory = memory;
  }

  /** How far the summary on top of `base` reaches that was asked for, and whether it is ready. */
  find(
    messages: readonly AgentMessage[],
    base: Compaction | undefined,
    start: number,
  ): { to: number; isReady: boolean } | undefined {
    if (this.#job && this.#job.base !== base) this.stop();
    this.#job ??= this.#findFinished(messages, base, start);
    return this.#job && { to: this.#job.to, isReady: this.#job.isReady() };
  }

  /** Asks for a summary, and does not wait for it. */
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
        if (last) this.#memory.storeSummary(last, base, summary);
        state = "ready";
        return { summary };
      } catch (error) {
        state = "failed";
        return { why: errorMessage(error) };
      }
    })();
    const stop = (): void => {
      if (state === "running") controller.abort();
    };
    this.#job = { base, to, given, isReady: () => state === "ready", stop };
  }

  /**
   * The summary that was asked for, once it is ready or `summaryWaitMs` have passed. Throws when the
   * run is canceled.
   */
  async take({ hooks }: ContextHost, config: ContextConfig): Promise<Summary> {
    const { given } = this.#job ?? {};
    if (!given) return {};
    const ms = config.summaryWaitMs ?? DEFAULT_SUMMARY_WAIT_MS;
    let cut: () => void = () => {};
    const late = hooks
      .wait(ms, (give) => (cut = give))
      .then((): Summary => ({ why: `It did not come within ${ms} ms.` }));
    try {
      return await hooks.call("summarize", () => Promise.race([given, late]));
    } finally {
      cut();
      this.stop();
    }
  }

  /** Drops the summary, and aborts it if it is not finished. */
  stop(): void {
    this.#job?.stop();
    this.#job = undefined;
  }

  /** A summary that an earlier run has finished. */
  #findFinished(
    messages: readonly AgentMessage[],
    base: Compaction | undefined,
    start: number,
  ): Job | undefined {
    for (let to = messages.length; to > start; to--) {
      const last = messages[to - 1];
      const summary = last && this.#memory.findSummary(last, base);
      if (summary === undefined) continue;
      const given = Promise.resolve({ summary });
      return { base, to, given, isReady: () => true, stop: () => {} };
    }
    return undefined;
  }
}
