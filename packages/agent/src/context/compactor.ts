import {
  type AssistantMessage,
  errorMessage,
  estimateContextTokens,
  estimateTokens,
  type Failure,
  textOf,
  type ToolCall,
} from "@gyre/ai";
import type { Compaction, ContextConfig } from "../contract/compaction.ts";
import { warn } from "../contract/contain.ts";
import type { ToolEffects } from "../contract/presentation.ts";
import type { AgentMessage } from "../contract/types.ts";
import { isToolResult } from "../transcript/history.ts";
import { truncateMiddle } from "../transcript/truncate.ts";
import {
  reserveTokens,
  type CompactionPlan,
  type ContextLimits,
  contextLimits,
  FACTS_SHARE,
  makesProgress,
  PINNED_SHARE,
  planCompaction,
  type PlanOptions,
  toReadableText,
  replacePinned,
  makeStandIn,
  SUMMARY_SHARE,
} from "./compaction.ts";
import { classifyCall, collectFacts, fitFacts } from "./facts.ts";
import type { ContextHost } from "./host.ts";
import { type ContextParts, provideContextParts } from "./load.ts";
import { capResult, makeShortForm } from "./long-results.ts";
import { ContextMemory } from "./memory.ts";
import { Summaries, type Summary } from "./summaries.ts";
import { View } from "./view.ts";

/** Share of the trigger from which on a run asks for a summary, before it needs one. */
const PREPARE_SHARE = 0.75;
/** Share of a context that a service refused that is left for the next attempt. */
const AFTER_OVERFLOW_SHARE = 0.5;
/** Share of the context that `Agent.compact` leaves. */
const ON_DEMAND_SHARE = 0.5;
const GROWN = "The context had grown above its limit.";
const REFUSED = "The service said that the context is too large.";
const ASKED = "It was asked for.";

/** What a compaction is to achieve. */
interface CompactionGoal {
  target: number;
  /** Above this even the last turns are cut. */
  trigger: number;
  reason: string;
  /** Also below the trigger, and for any gain. */
  force: boolean;
  /** A caller asked: everything but the last turns goes, with a summary of its own. */
  onDemand?: { keep?: string | undefined };
}

/** The context does not fit the model's window, and nothing more can be left out. */
export class ContextOverflowError extends Error {
  readonly failure: Failure = { kind: "overflow", retryable: false };
  constructor(tokens: number, window: number, why: string) {
    super(
      `The context of about ${tokens} tokens does not fit the model's window of ${window}, and cannot be made smaller. ${why}`,
    );
    this.name = "ContextOverflowError";
  }
}

const TOO_LARGE_STATUS = 413;

/** Keeps the context of one run small: what of the transcript is sent, and in which form. */
export class Compactor {
  readonly #host: ContextHost;
  readonly #memory: ContextMemory;
  readonly #view: View;
  readonly #summaries: Summaries;
  #compaction: Compaction | undefined;
  /** Tokens that a request has besides messages, as last computed. */
  #overhead:
    | {
        systemPrompt: string | undefined;
        toolbox: ContextHost["toolbox"];
        tokens: number;
      }
    | undefined;

  constructor(
    host: ContextHost,
    compaction: Compaction | undefined,
    memory: ContextMemory = new ContextMemory(host.config.context),
  ) {
    this.#host = host;
    this.#memory = memory;
    this.#view = new View(memory);
    this.#summaries = new Summaries(memory);
    this.#compaction = compaction;
  }

  /** The compaction in force. */
  get compaction(): Compaction | undefined {
    return this.#compaction;
  }

  #classify({ classifyCall: classify }: ContextConfig): (call: ToolCall) => ToolEffects {
    const { byName } = this.#host.toolbox;
    return classify ?? ((call) => classifyCall(call, (name) => byName.get(name)));
  }

  /** The transcript as it is sent. Valid until the next call. */
  messagesToSend(): readonly AgentMessage[] {
    return this.#view.update(this.#host.history.messages, this.#compaction);
  }

  /** Compacts the context if it is too large (R24), and prepares a summary shortly before. */
  async compactIfNeeded(config: ContextConfig): Promise<void> {
    const { trigger, target, window } = contextLimits(config, this.#host.model);
    const size = this.#size();
    if (size <= trigger) {
      if (size > trigger * PREPARE_SHARE) this.#prepareSummary(config, target - (trigger - size));
      return;
    }
    if (!(await this.#mayCompact(config, "auto")) && size <= window) return;
    const plan = await this.#compact(config, { target, trigger, reason: GROWN, force: false });
    const after = this.#size();
    if (plan?.why && after > window) throw new ContextOverflowError(after, window, plan.why);
  }

  /**
   * Compacts the context because a caller asked, whatever its size. Returns the tokens before and
   * after, or nothing where nothing is to be gained.
   */
  async compactNow(keep?: string): Promise<{ before: number; after: number } | undefined> {
    const config = this.#host.config.context ?? {};
    const limits = contextLimits(config, this.#host.model);
    const before = this.#size();
    const target = Math.min(limits.target, before * ON_DEMAND_SHARE);
    if (!(await this.#mayCompact(config, "manual"))) {
      throw new Error("The context is not compacted: beforeCompaction has put it off.");
    }
    const earlier = this.#compaction;
    await this.#compact(config, {
      target,
      trigger: limits.trigger,
      reason: ASKED,
      force: true,
      onDemand: { keep },
    });
    return this.#compaction === earlier ? undefined : { before, after: this.#size() };
  }

  /** Compacts the context after a service refused it. Returns why that is not possible, if it is not. */
  async compactAfterOverflow({ status }: Pick<Failure, "status">): Promise<string | undefined> {
    const { calibration, config, model } = this.#host;
    const { context } = config;
    if (!context) return "No context option says how to make it smaller.";
    const { target, window } = contextLimits(context, model);
    const estimated = this.#estimate();
    // The service counts at least the window, or it would have accepted the request.
    // A limit on bytes says nothing of tokens.
    const isTokens = status !== TOO_LARGE_STATUS;
    if (isTokens && Number.isFinite(window) && calibration.correct(estimated) < window) {
      calibration.observe(estimated, window);
    }
    const size = calibration.correct(estimated);
    const goal = Math.min(target, size * AFTER_OVERFLOW_SHARE);
    const plan = await this.#compact(context, {
      target: goal,
      trigger: goal,
      reason: REFUSED,
      force: true,
    });
    if (plan && plan.after < plan.before) return undefined;
    return `It cannot be made smaller. ${plan?.why ?? ""}`.trim();
  }

  /** Learns from what the service counted how far the estimates are off. */
  calibrate({ usage }: AssistantMessage): void {
    if (usage.input === undefined) return;
    const reported = usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
    this.#host.calibration.observe(this.#estimate(), reported);
  }

  /** Stops a summary that is still being made. */
  stop(): void {
    this.#summaries.stop();
  }

  /** Tokens of the next request, estimated, before the correction. */
  #estimate(): number {
    this.messagesToSend();
    return this.#view.tokens + this.#overheadTokens();
  }

  /** The same as the service would count. */
  #size(): number {
    return this.#host.calibration.correct(this.#estimate());
  }

  async #mayCompact(
    { beforeCompaction }: ContextConfig,
    trigger: "auto" | "manual",
  ): Promise<boolean> {
    if (!beforeCompaction) return true;
    const ask = (): ReturnType<typeof beforeCompaction> =>
      beforeCompaction(this.#host.signal, trigger);
    return (await this.#host.hooks.call("beforeCompaction", ask)) !== false;
  }

  /** Makes a plan, gathers what it needs, and applies it. Returns the plan. */
  async #compact(
    config: ContextConfig,
    { target, trigger, force, onDemand, ...goal }: CompactionGoal,
  ): Promise<CompactionPlan | undefined> {
    const { clock, history, model } = this.#host;
    const { messages } = history;
    const earlier = this.#compaction;
    const limits = { ...contextLimits(config, model), target, trigger };
    const pinned = await this.#pinnedText(config, Math.ceil(target * PINNED_SHARE));
    const news = pinned && !includesPinned(earlier, pinned) ? pinned : "";
    const makePlan = (atLeast = onDemand ? messages.length : 0): CompactionPlan | undefined =>
      this.#plan(limits, {
        allowance: reserveTokens(target, config.summarize !== undefined, pinned),
        added: estimateTokens(news),
        atLeast,
        force,
      });
    let plan = makePlan();
    if (!plan || !makesProgress(plan, earlier)) return plan;
    const start = earlier?.message ? earlier.to : plan.from;
    let { reason } = goal;
    let message = earlier?.message;
    let facts = earlier?.facts;
    const prepared =
      config.summarize && !onDemand ? this.#summaries.find(messages, earlier, start) : undefined;
    if (prepared && (prepared.isReady || plan.to > start)) plan = makePlan(prepared.to) ?? plan;
    const { to } = plan;
    if (to > start) {
      if (!prepared) this.#beginSummary(config, start, to, onDemand?.keep);
      const { summary, why } = await this.#takeSummary(config, target);
      if (why) reason = `${reason} ${why}`;
      const all = collectFacts(messages.slice(start, to), facts, this.#classify(config));
      // The summary covers its steps: they are not listed again.
      const listed =
        summary === undefined
          ? all
          : { ...all, steps: listSteps(messages, prepared?.to ?? to, to) };
      facts = fitFacts(listed, target * FACTS_SHARE);
      message = makeStandIn({ summary, facts, pinned }, clock.now());
    } else if (news) message = replacePinned(message, news, clock.now());
    const shortened = await this.#shortForms(config, plan);
    this.#summaries.stop();
    const compaction: Compaction = {
      ...(message ? { from: plan.from, to, message } : { from: 0, to: 0 }),
      ...(Object.keys(shortened).length > 0 && { shortened }),
      ...(facts && { facts }),
    };
    this.#compaction = compaction;
    await this.#host.emit({
      type: "compaction",
      before: plan.before,
      after: this.#size(),
      reason: plan.why ? `${reason} It stays above its target. ${plan.why}` : reason,
      compaction,
    });
    return plan;
  }

  /** Short forms of results: those in force that are still sent, and those of the plan. */
  async #shortForms(
    config: ContextConfig,
    { from, to, shorten }: CompactionPlan,
  ): Promise<Record<string, string>> {
    const { messages } = this.#host.history;
    const earlier = new Map(Object.entries(this.#compaction?.shortened ?? {}));
    const shortened = new Map<string, string>();
    for (let index = 0; index < messages.length; index++) {
      if (index === from) index = to;
      const message = messages[index];
      if (!message || !isToolResult(message)) continue;
      const { toolCallId: id } = message;
      const tokens = shorten.get(id);
      const text =
        tokens === undefined
          ? earlier.get(id)
          : await makeShortForm(this.#host, config, message, tokens);
      if (text !== undefined) shortened.set(id, text);
    }
    return Object.fromEntries(shortened);
  }

  /** Asks for a summary of what will have to go, so that it is there when it has to. */
  #prepareSummary(config: ContextConfig, target: number): void {
    const { history, model, turns } = this.#host;
    // A run that has called nothing yet may be over soon, and would not use it.
    if (!config.summarize || turns < 2) return;
    const { messages } = history;
    const earlier = this.#compaction;
    const start = earlier?.message ? earlier.to : 0;
    if (this.#summaries.find(messages, earlier, start)) return;
    const limits = contextLimits(config, model);
    const allowance = reserveTokens(limits.target, true, undefined);
    const reduced = { ...limits, target: Math.max(0, target) };
    const plan = this.#plan(reduced, { force: true, allowance });
    const from = earlier?.message ? earlier.to : (plan?.from ?? 0);
    if (plan && plan.to > from) this.#beginSummary(config, from, plan.to);
  }

  /** A plan on top of the compaction in force, in tokens as the service would count them. */
  #plan(limits: ContextLimits, options: PlanOptions): CompactionPlan | undefined {
    const { calibration, history } = this.#host;
    const earlier = this.#compaction;
    const overhead = this.#overheadTokens();
    const correct = (estimated: number): number => calibration.correct(estimated);
    const all = { ...options, earlier, overhead, correct };
    return planCompaction(history.messages, limits, all, this.#memory);
  }

  #beginSummary({ summarize }: ContextConfig, start: number, to: number, keep?: string): void {
    if (!summarize) return;
    const { messages } = this.#host.history;
    const { message } = this.#compaction ?? {};
    const left = messages.slice(start, to);
    const all: AgentMessage[] = message ? [message, ...left] : left;
    const read = all.flatMap((each) => this.#memory.toRead(each) ?? []);
    const text = toReadableText(read);
    this.#summaries.begin(messages, this.#compaction, to, (signal) =>
      summarize(text, signal, "turns", keep),
    );
  }

  /** A summary that helps, or why there is none: it failed, came too late, or is too long. */
  async #takeSummary(config: ContextConfig, target: number): Promise<Summary> {
    if (!config.summarize) return {};
    try {
      const { summary, why } = await this.#summaries.take(this.#host, config);
      if (summary === undefined) {
        return { why: `There is no summary: ${why ?? "none was made."}` };
      }
      if (estimateTokens(summary) <= target * SUMMARY_SHARE) return { summary };
      return { why: "The summary was too long, and is left out." };
    } catch (error) {
      if (this.#host.canceled) throw error;
      return { why: `There is no summary: ${errorMessage(error)}` };
    }
  }

  async #pinnedText({ pinned }: ContextConfig, maxTokens: number): Promise<string | undefined> {
    if (!pinned) return undefined;
    try {
      const text = await this.#host.hooks.call("pinned", pinned);
      return text && truncateMiddle(text, maxTokens, "[Here a part is left out.]");
    } catch (error) {
      if (this.#host.canceled) throw error;
      warn("pinned failed", error);
      return undefined;
    }
  }

  #overheadTokens(): number {
    const { systemPrompt, toolbox } = this.#host;
    const known = this.#overhead;
    if (known?.systemPrompt === systemPrompt && known?.toolbox === toolbox) return known.tokens;
    const tokens = estimateContextTokens({
      messages: [],
      tools: toolbox.specs,
      ...(systemPrompt && { systemPrompt }),
    });
    this.#overhead = { systemPrompt, toolbox, tokens };
    return tokens;
  }
}

function includesPinned(earlier: Compaction | undefined, pinned: string): boolean {
  return earlier?.message !== undefined && textOf(earlier.message).includes(pinned);
}

function listSteps(messages: readonly AgentMessage[], from: number, to: number): readonly string[] {
  return collectFacts(messages.slice(from, to), undefined, () => ({})).steps;
}

export const parts: ContextParts = { Compactor, capResult };
provideContextParts(parts);
