import { listCalls } from "@gyre/agent";
import { DurableError, isUnavailable } from "../contract/errors.ts";
import type { Run, RunEvent } from "../contract/types.ts";
import type { Runs } from "../runs/runs.ts";
import type { Evidence, SentItem } from "./checkers.ts";
import type { JournalLine } from "./journal.ts";
import { type PlannedItem, planRun, type RunPlan } from "./plan.ts";
import { SCRIPTED_AGENT } from "./scripted-agent.ts";

const PAUSE_MS = 50;

/** What a caller of a run has seen and done, as it goes on. */
export interface DrivenRun {
  readonly id: string;
  readonly seen: Map<number, string>;
  readonly sent: SentItem[];
  /** Its watcher has seen the end. */
  isOver: boolean;
}

/** Starts a run and does what its plan says, as a person would, until the run has ended. */
export async function driveRun(
  runs: Runs,
  seed: number,
  driven: DrivenRun,
  signal: AbortSignal,
): Promise<void> {
  const { id } = driven;
  const plan = planRun(seed, id);
  const insist = <T>(act: () => Promise<T>): Promise<T> => untilAvailable(act, signal);
  // Started twice it is one run.
  for (let times = 0; times < 2; times++) {
    await insist(() => runs.start(`Go ${id}.`, { agent: SCRIPTED_AGENT, id }));
  }
  const run = runs.get(id);
  const caller = new Caller(run, plan, driven, insist);
  let after = 0;
  while (!signal.aborted) {
    try {
      for await (const event of run.watch({ deltas: false, after, signal })) {
        await caller.see(event);
        after = event.seq;
      }
      driven.isOver = !signal.aborted;
      return;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      await pause(PAUSE_MS);
    }
  }
}

/** Gathers what the checkers need. */
export async function gatherEvidence(
  runs: Runs,
  { id, seen, sent, isOver }: DrivenRun,
  journal: readonly JournalLine[],
): Promise<Evidence> {
  const row = await runs.store.readRun(id);
  const stored = new Map<number, string>();
  if (row?.status === "ended") {
    for await (const event of runs.get(id).watch({ deltas: false })) {
      stored.set(event.seq, JSON.stringify(event));
    }
  }
  return {
    ...{ run: id, row, seen, sent, isOver, stored, journal },
    log: await runs.store.readEntriesAfter(id, 0, 100_000),
    messages: row ? await runs.get(id).messages() : [],
  };
}

/** The caller of a run: sends, approves, aborts. */
class Caller {
  readonly #run: Run;
  readonly #driven: DrivenRun;
  readonly #insist: <T>(act: () => Promise<T>) => Promise<T>;
  readonly #items: PlannedItem[];
  readonly #answers: number;
  #results = 0;
  #seenAnswers = 0;

  constructor(
    run: Run,
    plan: RunPlan,
    driven: DrivenRun,
    insist: <T>(act: () => Promise<T>) => Promise<T>,
  ) {
    this.#run = run;
    this.#driven = driven;
    this.#insist = insist;
    this.#items = [...plan.items];
    this.#answers = plan.answers.length;
  }

  async see(event: RunEvent): Promise<void> {
    this.#driven.seen.set(event.seq, JSON.stringify(event));
    const { type } = event.event;
    if (type === "tool_execution_end") this.#results++;
    let isLast = false;
    if (type === "message_end" && event.event.message.role === "assistant") {
      this.#seenAnswers++;
      isLast = this.#seenAnswers > this.#answers && listCalls(event.event.message).length === 0;
    }
    for (const item of this.#items.splice(0)) {
      const isDue = item.when === "last" ? isLast : this.#results > item.when;
      if (isDue) await this.#send(item);
      else this.#items.push(item);
    }
    if (type === "agent_end" && event.event.stop === "suspended") await this.#approve();
  }

  async #send({ kind, isTwice }: PlannedItem): Promise<void> {
    const { sent } = this.#driven;
    const key = `item-${sent.length}`;
    const text = `${kind} ${sent.length}`;
    const act = (): Promise<void> => {
      if (kind === "abort") return this.#run.abort({ key });
      return kind === "steering"
        ? this.#run.steer(text, { key })
        : this.#run.followUp(text, { key });
    };
    const outcome = await this.#attempt(act, "ended");
    sent.push({ kind, text, outcome: outcome === "ended" ? "ended" : "sent" });
    if (isTwice) await this.#attempt(act, "ended");
  }

  async #approve(): Promise<void> {
    const { pending } = await this.#insist(() => this.#run.info());
    const ids = pending.map(({ toolCall }) => toolCall.id);
    if (ids.length === 0) return;
    const decisions = Object.fromEntries(ids.map((id) => [id, { type: "approve" } as const]));
    // An earlier one may have been answered meanwhile; each end of an activation comes here.
    const key = `approve ${ids.join()}`;
    for (let times = 0; times < 2; times++) {
      await this.#attempt(() => this.#run.decide(decisions, { key }), "ended", "not_pending");
    }
  }

  /** Resolves to the code of an error that is expected. */
  async #attempt(act: () => Promise<void>, ...codes: string[]): Promise<string | undefined> {
    try {
      await this.#insist(act);
      return undefined;
    } catch (error) {
      if (error instanceof DurableError && codes.includes(error.code)) return error.code;
      throw error;
    }
  }
}

/** Calls again while the store is away. */
async function untilAvailable<T>(act: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!isUnavailable(error) || signal.aborted) throw error;
    }
    await pause(PAUSE_MS);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
