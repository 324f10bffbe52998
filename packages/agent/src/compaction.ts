import {
  type AssistantMessage,
  estimateMessageTokens,
  type Model,
  textOf,
  type UserMessage,
} from "@gyre/ai";
import { callsOf, isLlmMessage } from "./history.ts";
import type { AgentMessage } from "./types.ts";

export const DEFAULT_TRIGGER_TOKENS = 160_000;
/** Of the model's window, where that is less. */
export const DEFAULT_TRIGGER_SHARE = 0.8;
/** Of the trigger: well below it, so that the next compaction is far away. */
export const DEFAULT_TARGET_SHARE = 0.5;
export const DEFAULT_KEEP_TURNS = 2;
/** Stands for turns that nobody summarised. Always the same, so that it costs no cache. */
export const LEFT_OUT_TEXT = "[Earlier turns were left out here to save space.]";

/** When the context is made smaller, and how (R24). Sizes are in tokens, estimated. */
export interface ContextConfig {
  /** Above this it is compacted. Default: 160,000, or 80 % of the model's window if that is less. */
  triggerTokens?: number;
  /** What it is brought down to. Default: half of the trigger. */
  targetTokens?: number;
  /** Turns at the end that are kept as they are. Default 2. */
  keepTurns?: number;
  /**
   * Makes a short text of a long one; a model may do that. Without it, or when it
   * throws, old turns are left out and a constant sentence stands for them.
   */
  summarise?: (text: string, signal: AbortSignal) => string | Promise<string>;
}

/** What stands in what is sent for a part of the transcript, which itself stays whole. */
export interface Compaction {
  /** `messages[from]` up to, not including, `messages[to]` is what `message` stands for. */
  from: number;
  to: number;
  message: UserMessage;
}

export interface CompactionPlan {
  from: number;
  to: number;
  before: number;
  target: number;
}

/** The sizes to keep to for a model. */
export function contextLimits(
  config: ContextConfig,
  model: Model,
): { trigger: number; target: number; keepTurns: number } {
  const window = model.contextWindow ?? Number.POSITIVE_INFINITY;
  const trigger =
    config.triggerTokens ?? Math.min(DEFAULT_TRIGGER_TOKENS, window * DEFAULT_TRIGGER_SHARE);
  const target = config.targetTokens ?? trigger * DEFAULT_TARGET_SHARE;
  return { trigger, target, keepTurns: config.keepTurns ?? DEFAULT_KEEP_TURNS };
}

/**
 * What to leave out, or nothing: because there is room, or because leaving out would
 * not help. Pure. Keeps the first request and all before it, the last turns, and
 * every call with its results. `correct` makes of an estimate what the service would
 * count.
 */
export function planCompaction(
  messages: readonly AgentMessage[],
  limits: { trigger: number; target: number; keepTurns: number },
  overhead = 0,
  correct: (estimated: number) => number = (estimated) => estimated,
): CompactionPlan | undefined {
  const sizes = messages.map(tokensOf);
  const total = sizes.reduce((sum, size) => sum + size, overhead);
  const before = Math.round(correct(total));
  if (before <= limits.trigger) return undefined;
  const from =
    messages.findIndex((message) => isLlmMessage(message) && message.role === "user") + 1;
  const last = lastCut(messages, limits.keepTurns);
  let left = total + tokensOf(standIn(undefined, 0));
  let to = from;
  while (to < last && (correct(left) > limits.target || !isCut(messages, to))) {
    left -= sizes[to] ?? 0;
    to++;
  }
  return left < total && to > from ? { from, to, before, target: limits.target } : undefined;
}

/** The list as it is sent. Pure, and the same when applied again. */
export function applyCompaction(
  messages: readonly AgentMessage[],
  { from, to, message }: Compaction,
): readonly AgentMessage[] {
  return messages[from] === message ? messages : messages.toSpliced(from, to - from, message);
}

/** A plan made of an applied compaction, as one of the transcript itself. */
export function onTopOf(earlier: Compaction | undefined, plan: CompactionPlan): CompactionPlan {
  return earlier ? { ...plan, to: earlier.to + plan.to - earlier.from - 1 } : plan;
}

/** What happened in some messages, for somebody to sum up. */
export function readable(messages: readonly AgentMessage[]): string {
  return messages
    .filter(isLlmMessage)
    .map((message) => {
      if (message.role === "toolResult") {
        return `result of ${message.toolName}${message.isError ? " (error)" : ""}: ${textOf(message)}`;
      }
      const calls = message.role === "assistant" ? callsIn(message) : [];
      return [`${message.role}: ${textOf(message)}`, ...calls].join("\n");
    })
    .join("\n\n");
}

/** The message that stands for turns that were left out. */
export function standIn(summary: string | undefined, timestamp: number): UserMessage {
  const content = summary ? `Summary of earlier turns:\n\n${summary}` : LEFT_OUT_TEXT;
  return { role: "user", content, timestamp };
}

const sizes = new WeakMap<AgentMessage, number>();

/** About how many tokens a message is; remembered. A custom message is not sent. */
export function tokensOf(message: AgentMessage): number {
  if (!isLlmMessage(message)) return 0;
  let size = sizes.get(message);
  if (size === undefined) {
    size = estimateMessageTokens(message);
    sizes.set(message, size);
  }
  return size;
}

function callsIn(message: AssistantMessage): string[] {
  return callsOf(message).map(
    ({ name, arguments: args }) => `calls ${name} ${JSON.stringify(args)}`,
  );
}

/** Between turns: never in front of a result, whose call would be left out. */
function isCut(messages: readonly AgentMessage[], index: number): boolean {
  const message = messages[index];
  return !message || !isLlmMessage(message) || message.role !== "toolResult";
}

/** Where the last turns that are kept begin, with the question that the first of them answers. */
function lastCut(messages: readonly AgentMessage[], keepTurns: number): number {
  let turns = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index] as AgentMessage;
    if (!isLlmMessage(message) || message.role !== "assistant") continue;
    if (++turns < keepTurns) continue;
    const question = messages[index - 1];
    const isQuestion = question && isLlmMessage(question) && question.role === "user";
    return isQuestion ? index - 1 : index;
  }
  return 0;
}
