import {
  estimateTokens,
  type Model,
  textOf,
  type TextContent,
  type Message,
  type ToolResultMessage,
  type UserMessage,
} from "@gyre/ai";
import { truncateMiddle } from "../transcript/truncate.ts";
import type { Compaction, CompactionFacts, ContextConfig } from "../contract/compaction.ts";
import { formatFacts } from "./facts.ts";
import { ContextMemory } from "./memory.ts";
import { isAssistant, isLlmMessage, isToolResult, listCalls } from "../transcript/history.ts";
import type { AgentMessage } from "../contract/types.ts";

export const DEFAULT_TRIGGER_TOKENS = 160_000;
/** Share of the model's window that is the trigger, where that is less. */
export const DEFAULT_TRIGGER_SHARE = 0.8;
/** Share of the trigger that a compaction aims at: well below it, so that the next one is far away. */
export const DEFAULT_TARGET_SHARE = 0.5;
export const DEFAULT_KEEP_TURNS = 2;
/** Stands for turns that have no summary. Always the same, so that it costs no cache. */
export const LEFT_OUT_TEXT = "[Earlier turns were left out here to save space.]";

/** Shares of the target that facts and a summary may take, each. */
export const FACTS_SHARE = 0.15;
export const SUMMARY_SHARE = 0.2;
/** Share of the target to which a longer scratch-pad is truncated. */
export const PINNED_SHARE = 0.25;
/** Share of the target up to which the newest results stay whole. */
const WHOLE_RESULTS_SHARE = 0.25;
/** What a result in one line takes at most. */
export const SHORT_RESULT_TOKENS = 120;
/** A result is put into one line only where that saves as much again. */
const MIN_LONG_RESULT_TOKENS = 2 * SHORT_RESULT_TOKENS;
/** Share of the trigger: a compaction that gains less waits until it is urgent. */
const MIN_GAIN_SHARE = 0.1;
/** Share of the window above which a compaction is urgent. */
const URGENT_SHARE = 0.95;
/** What the stand-in takes beside its parts. */
const FRAME_TOKENS = 32;
/** What a result is cut down to at least, where even the last turn is too large. */
const MIN_CUT_TOKENS = 64;
/** Length of a result in a text that is to be summarized. */
const READABLE_RESULT_TOKENS = 600;

/** The sizes that `ContextConfig` comes to for one model, in tokens. */
export interface ContextLimits {
  trigger: number;
  target: number;
  keepTurns: number;
  /** The model's window. */
  window: number;
}

/** What `planCompaction` would do, with the sizes before and after it, in tokens. */
export interface CompactionPlan {
  /** What is to be left out. Equal: nothing is. */
  from: number;
  to: number;
  /** Results to send in a shorter form: call ids, with tokens; 0 is one line. */
  shorten: ReadonlyMap<string, number>;
  /** As the service would count. `after` is with `allowance` for what stands in. */
  before: number;
  after: number;
  target: number;
  /** Why it stays above the target, if it does. */
  why?: string;
}

export interface PlanOptions {
  /** The compaction in force. */
  earlier?: Compaction | undefined;
  /** What a request holds besides messages. */
  overhead?: number;
  /** Turns an estimate into what the service would count. */
  correct?: (estimated: number) => number;
  /** Room for what will stand for what is left out. */
  allowance?: number;
  /** What a compaction adds that leaves nothing out: a scratch-pad. */
  added?: number;
  /** There is a summary up to here: all before this is left out. */
  atLeast?: number;
  /** Also below the trigger, and for any gain. */
  force?: boolean;
}

/** The sizes to keep to for a model. */
export function contextLimits(config: ContextConfig, model: Model): ContextLimits {
  const window = model.contextWindow ?? Number.POSITIVE_INFINITY;
  const { triggerTokens = DEFAULT_TRIGGER_TOKENS } = config;
  const trigger = Math.min(triggerTokens, window * DEFAULT_TRIGGER_SHARE);
  const target = config.targetTokens ?? trigger * DEFAULT_TARGET_SHARE;
  return { trigger, target, keepTurns: config.keepTurns ?? DEFAULT_KEEP_TURNS, window };
}

/**
 * What to leave out and what to shorten, or nothing: because there is room, or because it
 * would gain so little that it can wait. Pure. Old results go first, then whole turns,
 * oldest first; then fewer of the last turns stay, and their results are cut. The first
 * request and all before it stay, and every call keeps its result. A plan that does not
 * get below the target says why; one that changes nothing has nothing in it but that. A run
 * passes the `memory` in which it has measured the messages before.
 */
export function planCompaction(
  messages: readonly AgentMessage[],
  limits: ContextLimits,
  options: PlanOptions = {},
  memory: ContextMemory = new ContextMemory(),
): CompactionPlan | undefined {
  const draft = new Draft(memory, messages, limits, options);
  const before = draft.size;
  const { trigger, target, keepTurns, window } = limits;
  const urgent = options.force || before > Math.max(trigger, window * URGENT_SHARE);
  if (!options.force && before <= trigger) return undefined;
  if (options.atLeast) draft.leaveOut(keepTurns, options.atLeast);
  draft.shortenResults(keepTurns);
  if (draft.size > target) draft.leaveOut(keepTurns);
  if (draft.size > trigger) {
    draft.leaveOut(1);
    draft.cutLast();
  }
  const after = draft.size;
  if (!urgent && before - after < trigger * MIN_GAIN_SHARE) return undefined;
  return {
    ...draft.result(before - after > 0),
    before,
    after: Math.min(before, after),
    target,
    ...(after > target && { why: draft.why() }),
  };
}

/** Whether a plan changes anything. */
export function makesProgress(
  { from, to, shorten }: CompactionPlan,
  earlier?: Compaction,
): boolean {
  return shorten.size > 0 || to > (earlier?.message ? earlier.to : from);
}

/** A plan while it is made: what would be sent, and how large that is. */
class Draft {
  readonly #memory: ContextMemory;
  readonly #messages: readonly AgentMessage[];
  readonly #limits: ContextLimits;
  readonly #options: PlanOptions;
  readonly #from: number;
  /** What is not left out yet begins here. */
  readonly #start: number;
  #to: number;
  readonly #shorten = new Map<string, number>();
  /** Estimated, without what stands for what is left out. */
  #tokens: number;
  readonly #sizes: number[] = [];

  constructor(
    memory: ContextMemory,
    messages: readonly AgentMessage[],
    limits: ContextLimits,
    options: PlanOptions,
  ) {
    const { earlier } = options;
    this.#memory = memory;
    this.#messages = messages;
    this.#limits = limits;
    this.#options = options;
    this.#from = earlier?.message ? earlier.from : findFirstRequestEnd(messages);
    this.#start = earlier?.message ? earlier.to : this.#from;
    this.#to = this.#start;
    this.#tokens = options.overhead ?? 0;
    for (let index = 0; index < messages.length; index++) {
      if (index === this.#from) index = this.#start;
      const message = messages[index];
      if (!message) break;
      const size = memory.countTokens(memory.toSent(message, earlier?.shortened));
      this.#sizes[index] = size;
      this.#tokens += size;
    }
  }

  /** As the service would count. */
  get size(): number {
    const { correct = Math.round, allowance = 0, added = 0, earlier } = this.#options;
    if (this.#to > this.#start) return correct(this.#tokens + allowance + FRAME_TOKENS);
    const standing = earlier?.message ? this.#memory.countTokens(earlier.message) : 0;
    const isSame = this.#shorten.size === 0 || added === 0;
    return correct(this.#tokens + standing + (isSame ? 0 : added + FRAME_TOKENS));
  }

  /** Old results become one line each, until there is room. The newest stay whole. */
  shortenResults(keepTurns: number): void {
    const { target } = this.#limits;
    const end = this.#cutBefore(keepTurns);
    let whole = target * WHOLE_RESULTS_SHARE;
    let last = end;
    while (last > this.#to && whole >= 0) {
      if (this.#resultAt(last - 1)) whole -= this.#sizes[last - 1] ?? 0;
      if (whole >= 0) last--;
    }
    for (let index = this.#to; index < last && this.size > target; index++) {
      const result = this.#resultAt(index);
      if (result) this.#shortenTo(index, result, 0);
    }
  }

  /** Whole turns are left out, the oldest first: until there is room, or up to a place. */
  leaveOut(keepTurns: number, upTo?: number): void {
    const { target } = this.#limits;
    const end = this.#cutBefore(keepTurns);
    const isEnough = (): boolean =>
      upTo === undefined ? this.#to > this.#start && this.size <= target : this.#to >= upTo;
    while (this.#to < end && !(isEnough() && isBetweenTurns(this.#messages, this.#to))) {
      this.#tokens -= this.#sizes[this.#to] ?? 0;
      const result = this.#resultAt(this.#to++);
      if (result) this.#shorten.delete(result.toolCallId);
    }
  }

  /** The results that are left are cut to one height, at which they fit. */
  cutLast(): void {
    const results: { index: number; result: ToolResultMessage; size: number }[] = [];
    for (let index = this.#to; index < this.#messages.length; index++) {
      const result = this.#resultAt(index);
      if (result) results.push({ index, result, size: this.#sizes[index] ?? 0 });
    }
    results.sort((one, other) => other.size - one.size);
    const { size } = this;
    let over = (size - this.#limits.target) * (this.#tokens / Math.max(1, size));
    if (over <= 0) return;
    let height = 0;
    for (const [rank, each] of results.entries()) {
      over -= each.size;
      height = -over / (rank + 1);
      if (height >= (results[rank + 1]?.size ?? 0)) break;
    }
    const tokens = Math.max(MIN_CUT_TOKENS, Math.floor(height) - SHORT_RESULT_TOKENS);
    for (const { index, result } of results) this.#shortenTo(index, result, tokens);
  }

  result(gains: boolean): Pick<CompactionPlan, "from" | "to" | "shorten"> {
    const from = this.#from;
    if (!gains) return { from, to: this.#start, shorten: new Map() };
    return { from, to: this.#to, shorten: this.#shorten };
  }

  why(): string {
    const { correct = Math.round, overhead = 0 } = this.#options;
    const sum = (from: number, to: number): number =>
      correct(this.#sizes.slice(from, to).reduce((total, size) => total + size, 0));
    return (
      `The system prompt and the tools take ${correct(overhead)} tokens, ` +
      `the first request ${sum(0, this.#from)}, ` +
      `the last turns ${sum(this.#to, this.#messages.length)}.`
    );
  }

  #shortenTo(index: number, { toolCallId }: ToolResultMessage, tokens: number): void {
    const size = this.#sizes[index] ?? 0;
    const next = tokens + SHORT_RESULT_TOKENS;
    if (size < MIN_LONG_RESULT_TOKENS || next >= size) return;
    this.#tokens -= size - next;
    this.#sizes[index] = next;
    this.#shorten.set(toolCallId, tokens);
  }

  #resultAt(index: number): ToolResultMessage | undefined {
    const message = this.#messages[index];
    return message && isToolResult(message) ? message : undefined;
  }

  #cutBefore(keepTurns: number): number {
    return findLastTurns(this.#messages, this.#start, Math.max(1, keepTurns));
  }
}

/** The list as it is sent. Pure, and the same when applied again. */
export function applyCompaction(
  messages: readonly AgentMessage[],
  { from, to, message, shortened }: Compaction,
): readonly AgentMessage[] {
  const sent =
    !message || messages[from] === message
      ? messages
      : messages.toSpliced(from, to - from, message);
  if (!shortened) return sent;
  const memory = new ContextMemory();
  const short = sent.map((each) => memory.toSent(each, shortened));
  return short.every((each, index) => each === sent[index]) ? sent : short;
}

/** The messages as a text that a model can summarize. */
export function toReadableText(messages: readonly Message[]): string {
  return messages
    .map((message) => {
      if (message.role === "toolResult") {
        const text = truncateMiddle(textOf(message), READABLE_RESULT_TOKENS, "[...]");
        return `result of ${message.toolName}${message.isError ? " (error)" : ""}: ${text}`;
      }
      const calls = (message.role === "assistant" ? listCalls(message) : []).map(
        ({ name, arguments: args }) => `calls ${name} ${JSON.stringify(args)}`,
      );
      return [`${message.role}: ${textOf(message)}`, ...calls].join("\n");
    })
    .join("\n\n");
}

/** What the message that stands for turns is made of. */
export interface StandInParts {
  /** Absent: a constant sentence is in its place. */
  summary?: string | undefined;
  facts?: CompactionFacts | undefined;
  pinned?: string | undefined;
}

/** The message that stands for turns that were left out. */
export function makeStandIn(
  { summary, facts, pinned }: StandInParts,
  timestamp: number,
): UserMessage {
  const head = summary ? `Summary of earlier turns:\n\n${summary}` : LEFT_OUT_TEXT;
  const list = facts ? formatFacts(facts) : "";
  return withPinned(list ? `${head}\n\n${list}` : head, pinned, timestamp);
}

/** The same with another scratch-pad. Nothing before it: the scratch-pad alone. */
export function replacePinned(
  message: UserMessage | undefined,
  pinned: string,
  timestamp: number,
): UserMessage {
  if (!message || typeof message.content === "string") {
    return withPinned(message ? textOf(message) : "", pinned, timestamp);
  }
  const [first] = message.content;
  const isAlone = message.content.length === 1;
  return withPinned(!isAlone && first?.type === "text" ? first.text : "", pinned, timestamp);
}

/** The scratch-pad is a block of its own, so that it can be replaced. */
function withPinned(text: string, pinned: string | undefined, timestamp: number): UserMessage {
  if (!pinned) return { role: "user", content: text, timestamp };
  const content: TextContent[] = text ? [{ type: "text", text }] : [];
  const lead = text ? "\n\n" : "";
  content.push({ type: "text", text: `${lead}Notes, as they were then:\n\n${pinned}` });
  return { role: "user", content, timestamp };
}

/** What is to be reserved for the message that will stand in. */
export function reserveTokens(
  target: number,
  hasSummary: boolean,
  pinned: string | undefined,
): number {
  const share = FACTS_SHARE + (hasSummary ? SUMMARY_SHARE : 0);
  return Math.ceil(target * share) + (pinned ? estimateTokens(pinned) : 0);
}

/** Behind the first request; 0 where there is none. */
function findFirstRequestEnd(messages: readonly AgentMessage[]): number {
  return messages.findIndex((message) => isLlmMessage(message) && message.role === "user") + 1;
}

/** Between turns: never in front of a result, whose call would be left out. */
function isBetweenTurns(messages: readonly AgentMessage[], index: number): boolean {
  for (let next = index; next < messages.length; next++) {
    const message = messages[next] as AgentMessage;
    if (isLlmMessage(message)) return message.role !== "toolResult";
  }
  return true;
}

/** Where the last turns that are kept begin, with the question that the first of them answers. */
function findLastTurns(
  messages: readonly AgentMessage[],
  start: number,
  keepTurns: number,
): number {
  let turns = 0;
  for (let index = messages.length - 1; index >= start; index--) {
    const message = messages[index] as AgentMessage;
    if (!isAssistant(message)) continue;
    if (++turns < keepTurns) continue;
    const question = messages[index - 1];
    const isQuestion = question && isLlmMessage(question) && question.role === "user";
    return isQuestion ? Math.max(start, index - 1) : index;
  }
  return start;
}
