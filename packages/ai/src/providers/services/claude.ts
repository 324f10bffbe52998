import type { StreamOptions, ThinkingBudgets } from "../../client/client.ts";
import type { Message, Model } from "../../messages/messages.ts";
import { isOwn } from "../../messages/transform-messages.ts";

/** What holds for Claude models on whichever wire. */

/** Thinking between calls needs this, where thinking goes by a budget. */
export const INTERLEAVED_BETA = "interleaved-thinking-2025-05-14";
/** What is asked for where neither the caller nor the catalogue says. */
const DEFAULT_MAX_TOKENS = 8_192;
/** More is asked for only by callers who want it: it has to fit the window with the input. */
const USUAL_MAX_TOKENS = 32_000;
/** The service takes no smaller budget, and the answer needs some room beside it. */
const MIN_BUDGET = 1_024;
const BUDGETS: Required<ThinkingBudgets> = {
  minimal: MIN_BUDGET,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 32_768,
};

/** Said of a result that cannot be marked as an error. */
export const FAILED = "(The call failed.)";

/**
 * A transcript as Claude models take it, on whichever wire: no message of the assistant ends
 * with thinking (it was cut off there), no text is blank, and where the model does not go on
 * with what was begun for it, the user has the last word.
 */
export function claudeMessages(messages: readonly Message[], model: Model): Message[] {
  const turns = messages.flatMap((message): Message[] => {
    if (message.role !== "assistant") return [message];
    const content = message.content.filter(
      (block) => block.type !== "text" || block.text.trim() !== "",
    );
    while (content.at(-1)?.type === "thinking") content.pop();
    return content.length > 0 ? [{ ...message, content }] : [];
  });
  const last = turns.at(-1);
  if (last?.role !== "assistant" || claudeVersion(model.id) < FIRST_WITHOUT_PREFILL) return turns;
  // What the service paused it wants back as it was.
  const paused = isOwn(last, model) && last.content.some(({ type }) => type === "serviceTool");
  if (paused && last.stopReason === "pause") return turns;
  return [...turns, { role: "user", content: "(Go on.)", timestamp: last.timestamp }];
}

type Effort = "low" | "medium" | "high" | "xhigh";

export interface Thinking {
  params: {
    max_tokens: number;
    thinking?:
      | { type: "adaptive"; display?: "summarized" }
      | { type: "enabled"; budget_tokens: number }
      | { type: "disabled" | "between_tools" };
    output_config?: { effort: Effort };
  };
  /** It goes by a number of tokens. */
  budgeted: boolean;
}

/** How much a Claude model may think and say in answer to `messages`, on whichever wire. */
export function thinkingOf(
  model: Model,
  options: StreamOptions,
  messages: readonly Message[],
): Thinking {
  const { maxTokens, thinkingBudgets, thinkingLevel = "off" } = options;
  const most = model.maxTokens ?? DEFAULT_MAX_TOKENS;
  const max_tokens = maxTokens ?? Math.min(most, USUAL_MAX_TOKENS);
  const forced = isForced(options) && takesForcedCalls(model);
  if (thinkingLevel === "off" || forced || !mayThink(messages, model)) {
    return { params: { max_tokens, ...notThinking(model, forced) }, budgeted: false };
  }
  if (thinksAdaptively(model)) {
    const effort = thinkingLevel === "minimal" ? "low" : thinkingLevel;
    return { params: { max_tokens, ...adaptively(model, effort) }, budgeted: false };
  }
  const wanted = thinkingBudgets?.[thinkingLevel] ?? BUDGETS[thinkingLevel];
  // More than the model can say in all is refused.
  const can = (model.maxTokens ?? Infinity) - MIN_BUDGET;
  const budget_tokens = Math.max(MIN_BUDGET, Math.min(wanted, can));
  // Thinking counts as output: what is asked for is room for the answer on top of it.
  const room = Math.max(Math.min(max_tokens + budget_tokens, most), budget_tokens + MIN_BUDGET);
  return {
    params: { max_tokens: room, thinking: { type: "enabled", budget_tokens } },
    budgeted: true,
  };
}

/** A call that has to be made leaves no room for thinking: the service refuses both together. */
function isForced({ toolChoice }: StreamOptions): boolean {
  return toolChoice === "required" || typeof toolChoice === "object";
}

type Said = Pick<Thinking["params"], "thinking" | "output_config">;

function adaptively({ id }: Model, wanted: Effort): Said {
  const version = claudeVersion(id);
  const effort = wanted === "xhigh" && version < FIRST_WITH_XHIGH ? "high" : wanted;
  // Newer models think without a word, unless they are asked for some.
  const shown = version >= FIRST_SILENT && { display: "summarized" as const };
  return { thinking: { type: "adaptive", ...shown }, output_config: { effort } };
}

/**
 * How those are told not to think that think unless they are told. Who does not know such a
 * word is asked to think as little as it can.
 */
const OFF_WORDS: Readonly<Record<string, "disabled" | "between_tools">> = {
  "opus 500": "disabled",
  "sonnet 500": "disabled",
  "sonnet 505": "between_tools",
  "haiku 505": "disabled",
};

function notThinking(model: Model, forced: boolean): Said {
  const version = claudeVersion(model.id);
  if (version < FIRST_THINKING_UNASKED) return {};
  const [, family = ""] = /claude-([a-z]+)-/.exec(model.id) ?? [];
  const type = OFF_WORDS[`${family} ${version}`];
  if (type) return { thinking: { type } };
  return forced ? {} : adaptively(model, "low");
}

/** Newer models have a temperature of their own, and refuse to hear of another. */
export function takesTemperature({ id }: Model): boolean {
  return claudeVersion(id) < FIRST_WITHOUT_TEMPERATURE;
}

/** The newest models refuse to be told that they have to call a tool. */
export function takesForcedCalls({ id }: Model): boolean {
  return claudeVersion(id) < FIRST_WITHOUT_FORCED_CALLS;
}

/**
 * In the middle of a turn that began without thinking, the service refuses to begin with it,
 * but for models that think unasked.
 */
function mayThink(messages: readonly Message[], { id }: Model): boolean {
  if (messages.at(-1)?.role === "user") return true;
  if (claudeVersion(id) >= FIRST_THINKING_UNASKED) return true;
  let first = messages.findLastIndex(({ role }) => role === "assistant");
  // Neighbours are one message there.
  while (messages[first - 1]?.role === "assistant") first--;
  const begun = messages[first];
  return begun?.role !== "assistant" || begun.content[0]?.type === "thinking";
}

/** Newer models take a level; the older ones a number of tokens. A quirk may say it. */
function thinksAdaptively({ id, quirks }: Model): boolean {
  const said = quirks?.["thinking"];
  if (said === "adaptive" || said === "budget") return said === "adaptive";
  return claudeVersion(id) >= FIRST_ADAPTIVE;
}

const MINOR_VERSIONS = 100;
const FIRST_ADAPTIVE = 406;
/** From here on the assistant may not have the last word. */
const FIRST_WITHOUT_PREFILL = 406;
const FIRST_WITH_XHIGH = 407;
const FIRST_SILENT = 407;
const FIRST_WITHOUT_TEMPERATURE = 407;
const FIRST_THINKING_UNASKED = 500;
const FIRST_WITHOUT_FORCED_CALLS = 501;

/** 405 for a Claude 4.5, whatever stands around its name; 0 for those before Claude 4. */
export function claudeVersion(id: string): number {
  const [, major = "0", minor = "0"] = /claude-[a-z]+-(\d+)(?:-(\d{1,2}))?(?!\d)/.exec(id) ?? [];
  return Number(major) * MINOR_VERSIONS + Number(minor);
}
