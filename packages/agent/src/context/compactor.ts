import {
  type AssistantMessage,
  estimateContextTokens,
  estimateTokens,
  type Failure,
  textOf,
} from "@gyre/ai";
import {
  allowanceFor,
  type Compaction,
  type CompactionPlan,
  type ContextConfig,
  contextLimits,
  FACTS_SHARE,
  makesProgress,
  PINNED_SHARE,
  planCompaction,
  readable,
  repinned,
  standIn,
  SUMMARY_SHARE,
} from "./compaction.ts";
import { cutMiddle } from "../transcript/truncate.ts";
import { factsOf, fitFacts } from "./facts.ts";
import { isLlmMessage } from "../transcript/history.ts";
import { shortForm } from "./long-results.ts";
import { contained, messageOf, type Run } from "../run/run.ts";
import type { AgentMessage } from "../contract/types.ts";

/** Of the trigger: from here on a summary is asked for, before it is needed. */
const PREPARE_SHARE = 0.75;
/** Of what a service has refused: what is left of it for the next try. */
const AFTER_OVERFLOW_SHARE = 0.5;
const GROWN = "The context had grown above its limit.";
const REFUSED = "The service said that the context is too large.";
const ASKED = "It was asked for.";
/** Of what is sent: what is left of it where somebody asks for a smaller context. */
const ON_DEMAND_SHARE = 0.5;

/** What a compaction is for. */
interface Aim {
  target: number;
  /** Above this even the last turns are cut. */
  trigger: number;
  reason: string;
  /** Also below the trigger, and for any gain. */
  force: boolean;
  /** Nobody has waited for it: all but the last turns goes, with a summary of its own. */
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

/** The transcript as it is sent. Valid until the next call. */
export function sentBy(run: Run): readonly AgentMessage[] {
  return run.view.of(run.history.messages, run.compaction);
}

/** What the next request is estimated to be, before it is corrected. */
function estimate(run: Run): number {
  sentBy(run);
  return run.view.tokens + overheadOf(run);
}

/** The same as the service would count. */
function sizeOf(run: Run): number {
  return run.calibration.correct(estimate(run));
}

/** Makes the context smaller, if it is too large (R24), and gets ready for it before. */
export async function keepSmall(run: Run, config: ContextConfig): Promise<void> {
  const { trigger, target, window } = contextLimits(config, run.model);
  const size = sizeOf(run);
  if (size <= trigger) {
    if (size > trigger * PREPARE_SHARE) prepareSummary(run, config, target - (trigger - size));
    return;
  }
  if (!(await mayCompact(run, config, "auto")) && size <= window) return;
  const plan = await compact(run, config, { target, trigger, reason: GROWN, force: false });
  const after = sizeOf(run);
  if (plan?.why && after > window) throw new ContextOverflowError(after, window, plan.why);
}

/**
 * Makes the context smaller because somebody asked for it, whatever its size. Answers with the
 * tokens before and after; with nothing where nothing is to be gained.
 */
export async function compactNow(
  run: Run,
  keep?: string,
): Promise<{ before: number; after: number } | undefined> {
  const config = run.config.context ?? {};
  const limits = contextLimits(config, run.model);
  const before = sizeOf(run);
  const target = Math.min(limits.target, before * ON_DEMAND_SHARE);
  if (!(await mayCompact(run, config, "manual"))) {
    throw new Error("The context is not compacted: beforeCompaction has put it off.");
  }
  const earlier = run.compaction;
  await compact(run, config, {
    target,
    trigger: limits.trigger,
    reason: ASKED,
    force: true,
    onDemand: { keep },
  });
  return run.compaction === earlier ? undefined : { before, after: sizeOf(run) };
}

/**
 * Makes the context smaller because a service would not take it. Answers with what is
 * wrong where that is not possible.
 */
export async function makeSmaller(run: Run): Promise<string | undefined> {
  const { context } = run.config;
  if (!context) return "No context option says how to make it smaller.";
  const { target, window } = contextLimits(context, run.model);
  const estimated = estimate(run);
  // It counts at least so much, or it would have taken it.
  if (Number.isFinite(window) && run.calibration.correct(estimated) < window) {
    run.calibration.observe(estimated, window);
  }
  const size = run.calibration.correct(estimated);
  const aim = Math.min(target, size * AFTER_OVERFLOW_SHARE);
  const plan = await compact(run, context, {
    target: aim,
    trigger: aim,
    reason: REFUSED,
    force: true,
  });
  if (plan && plan.after < plan.before) return undefined;
  return `It cannot be made smaller. ${plan?.why ?? ""}`.trim();
}

async function mayCompact(
  run: Run,
  { beforeCompaction }: ContextConfig,
  trigger: "auto" | "manual",
): Promise<boolean> {
  if (!beforeCompaction) return true;
  const ask = (): ReturnType<typeof beforeCompaction> => beforeCompaction(run.signal, trigger);
  return (await run.hook("beforeCompaction", ask)) !== false;
}

/** Plans, gathers what the plan needs, and applies it. Answers with what was planned. */
async function compact(
  run: Run,
  config: ContextConfig,
  { target, trigger, force, onDemand, ...aim }: Aim,
): Promise<CompactionPlan | undefined> {
  const { messages } = run.history;
  const earlier = run.compaction;
  const limits = { ...contextLimits(config, run.model), target, trigger };
  const pinned = await pinnedText(run, config, Math.ceil(target * PINNED_SHARE));
  const news = pinned && !isIn(earlier, pinned) ? pinned : "";
  const planned = (atLeast = onDemand ? messages.length : 0): CompactionPlan | undefined =>
    planCompaction(messages, limits, {
      earlier,
      overhead: overheadOf(run),
      correct: (estimated) => run.calibration.correct(estimated),
      allowance: allowanceFor(target, config.summarise !== undefined, pinned),
      added: estimateTokens(news),
      atLeast,
      force,
    });
  let plan = planned();
  if (!plan || !makesProgress(plan, earlier)) return plan;
  const start = earlier?.message ? earlier.to : plan.from;
  let { reason } = aim;
  let message = earlier?.message;
  let facts = earlier?.facts;
  const asked =
    config.summarise && !onDemand ? run.summaries.asked(messages, earlier, start) : undefined;
  if (asked && (asked.isReady || plan.to > start)) plan = planned(asked.to) ?? plan;
  const { to } = plan;
  if (to > start) {
    if (!asked) beginSummary(run, config, start, to, onDemand?.keep);
    const { summary, why } = await summaryFor(run, config, target);
    if (why) reason = `${reason} ${why}`;
    const all = factsOf(messages.slice(start, to), facts, config.traceOf);
    // What the summary tells need not be told twice.
    const told =
      summary === undefined ? all : { ...all, steps: stepsOf(messages, asked?.to ?? to, to) };
    facts = fitFacts(told, target * FACTS_SHARE);
    message = standIn({ summary, facts, pinned }, run.clock.now());
  } else if (news) message = repinned(message, news, run.clock.now());
  const shortened = await shortForms(run, config, plan);
  run.summaries.stop();
  run.compaction = {
    ...(message ? { from: plan.from, to, message } : { from: 0, to: 0 }),
    ...(Object.keys(shortened).length > 0 && { shortened }),
    ...(facts && { facts }),
  };
  await run.emit({
    type: "compaction",
    before: plan.before,
    after: sizeOf(run),
    reason: plan.why ? `${reason} It stays above its target. ${plan.why}` : reason,
    compaction: run.compaction,
  });
  return plan;
}

function isIn(earlier: Compaction | undefined, pinned: string): boolean {
  return earlier?.message !== undefined && textOf(earlier.message).includes(pinned);
}

function stepsOf(messages: readonly AgentMessage[], from: number, to: number): readonly string[] {
  return factsOf(messages.slice(from, to), undefined).steps;
}

/** Short forms of results: those in force that are still sent, and those of the plan. */
async function shortForms(
  run: Run,
  config: ContextConfig,
  { from, to, shorten }: CompactionPlan,
): Promise<Record<string, string>> {
  const { messages } = run.history;
  const earlier = new Map(Object.entries(run.compaction?.shortened ?? {}));
  const shortened = new Map<string, string>();
  for (let index = 0; index < messages.length; index++) {
    if (index === from) index = to;
    const message = messages[index];
    if (!message || !isLlmMessage(message) || message.role !== "toolResult") continue;
    const { toolCallId: id } = message;
    const tokens = shorten.get(id);
    const text =
      tokens === undefined ? earlier.get(id) : await shortForm(run, config, message, tokens);
    if (text !== undefined) shortened.set(id, text);
  }
  return Object.fromEntries(shortened);
}

/** Asks for a summary of what will have to go, so that it is there when it has to. */
function prepareSummary(run: Run, config: ContextConfig, target: number): void {
  // A run that has called nothing yet may be over soon, and would not use it.
  if (!config.summarise || run.turns < 2) return;
  const { messages } = run.history;
  const earlier = run.compaction;
  const start = earlier?.message ? earlier.to : 0;
  if (run.summaries.asked(messages, earlier, start)) return;
  const limits = contextLimits(config, run.model);
  const plan = planCompaction(
    messages,
    { ...limits, target: Math.max(0, target) },
    {
      force: true,
      earlier,
      overhead: overheadOf(run),
      correct: (estimated) => run.calibration.correct(estimated),
      allowance: allowanceFor(limits.target, true, undefined),
    },
  );
  const from = earlier?.message ? earlier.to : (plan?.from ?? 0);
  if (plan && plan.to > from) beginSummary(run, config, from, plan.to);
}

function beginSummary(
  run: Run,
  { summarise }: ContextConfig,
  start: number,
  to: number,
  keep?: string,
): void {
  if (!summarise) return;
  const { messages } = run.history;
  const { message } = run.compaction ?? {};
  const left = messages.slice(start, to);
  const text = readable(message ? [message, ...left] : left);
  run.summaries.begin(messages, run.compaction, to, (signal) =>
    summarise(text, signal, "turns", keep),
  );
}

/** A summary that helps, or why there is none: it failed, came too late, or is too long. */
async function summaryFor(
  run: Run,
  config: ContextConfig,
  target: number,
): Promise<{ summary?: string; why?: string }> {
  if (!config.summarise) return {};
  try {
    const { summary, why } = await run.summaries.take(run, config);
    if (summary === undefined) return { why: `There is no summary: ${why ?? "nobody made one."}` };
    if (estimateTokens(summary) <= target * SUMMARY_SHARE) return { summary };
    return { why: "The summary was too long, and is left out." };
  } catch (error) {
    if (run.cancelled) throw error;
    return { why: `There is no summary: ${messageOf(error)}` };
  }
}

async function pinnedText(
  run: Run,
  { pinned }: ContextConfig,
  most: number,
): Promise<string | undefined> {
  if (!pinned) return undefined;
  try {
    const text = await run.hook("pinned", pinned);
    return text && cutMiddle(text, most, "[Here a part is left out.]");
  } catch (error) {
    if (run.cancelled) throw error;
    contained("pinned failed", () => {
      throw error;
    });
    return undefined;
  }
}

/** What a request holds besides messages. */
function overheadOf(run: Run): number {
  const { systemPrompt, toolbox } = run;
  const known = run.overhead;
  if (known?.systemPrompt === systemPrompt && known?.toolbox === toolbox) return known.tokens;
  const tokens = estimateContextTokens({
    messages: [],
    tools: toolbox.specs,
    ...(systemPrompt && { systemPrompt }),
  });
  run.overhead = { systemPrompt, toolbox, tokens };
  return tokens;
}

/** Learns from what the service counted how far our estimates are off. */
export function calibrate(run: Run, { usage }: AssistantMessage): void {
  if (usage.input === undefined) return;
  const reported = usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
  run.calibration.observe(estimate(run), reported);
}
