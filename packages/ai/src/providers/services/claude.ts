import type { StreamOptions, ThinkingBudgets } from "../../client/client.ts";
import type { AssistantMessage, Context, Message, Model } from "../../messages/messages.ts";
import { hashId, isOwn } from "../../messages/transform-messages.ts";
import { hasFeature } from "./claude-models.ts";
import { type ActiveLevel, findEffortWord, nearestLevel, USUAL_LEVELS } from "./thinking-level.ts";

/** Thinking between calls needs this, where thinking goes by a budget. */
export const INTERLEAVED_BETA = "interleaved-thinking-2025-05-14";
/** Controls over thinking that is bound to what was before it need this. */
export const BINDING_BETA = "thinking-binding-controls-2026-08-01";
/** What is asked for where neither the caller nor the catalog says. */
const DEFAULT_MAX_TOKENS = 8_192;
/** More is asked for only by callers who want it: it has to fit the window with the input. */
const USUAL_MAX_TOKENS = 32_000;
/** Of a hash of what is before a message. */
const PREFIX_CHARS = 12;
/** The service takes no smaller budget, and the answer needs some room beside it. */
const MIN_BUDGET = 1_024;
const BUDGETS: Required<ThinkingBudgets> = {
  minimal: MIN_BUDGET,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 32_768,
  max: 65_536,
};

/** Said of a result that cannot be marked as an error. */
export const FAILED = "(The call failed.)";

/**
 * A transcript as Claude models take it in any format: no message of the assistant ends
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
  if (last?.role !== "assistant" || !hasFeature(model, "userLast")) return turns;
  // What the service paused it wants back as it was.
  const paused = isOwn(last, model) && last.content.some(({ type }) => type === "serviceTool");
  if (paused && last.stopReason === "pause") return turns;
  return [...turns, { role: "user", content: "(Go on.)", timestamp: last.timestamp }];
}

const EFFORTS = ["low", "medium", "high", "xhigh", "max"] as const;

export interface Thinking {
  params: {
    max_tokens: number;
    thinking?:
      | {
          type: "adaptive";
          display?: "summarized";
          block_binding?: { prefix_mismatch_behavior: "drop_block" };
        }
      | { type: "enabled"; budget_tokens: number }
      | { type: "disabled" | "between_tools" };
    output_config?: { effort: (typeof EFFORTS)[number] };
  };
  /** It goes by a number of tokens. */
  budgeted: boolean;
}

/** How much a Claude model may think and say in answer to `messages`, in any format. */
export function chooseThinking(
  model: Model,
  options: StreamOptions,
  messages: readonly Message[],
): Thinking {
  const { maxTokens, thinkingBudgets, thinkingLevel = "off" } = options;
  const most = model.maxTokens ?? DEFAULT_MAX_TOKENS;
  const max_tokens = maxTokens ?? Math.min(most, USUAL_MAX_TOKENS);
  const forced = isForced(options) && !hasFeature(model, "noForcedCalls");
  if (thinkingLevel === "off" || forced || !mayThink(messages, model)) {
    return { params: { max_tokens, ...offParams(model, forced) }, budgeted: false };
  }
  if (thinksAdaptively(model)) {
    return { params: { max_tokens, ...adaptiveParams(model, thinkingLevel) }, budgeted: false };
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

type ThinkingParams = Pick<Thinking["params"], "thinking" | "output_config">;

function adaptiveParams(model: Model, wanted: ActiveLevel): ThinkingParams {
  const usual = hasFeature(model, "xhighEffort")
    ? [...USUAL_LEVELS, "xhigh" as const, "max" as const]
    : undefined;
  const level = nearestLevel(wanted, model.thinkingLevels ?? usual) ?? wanted;
  const word = findEffortWord(model, level);
  const effort = EFFORTS.find((known) => known === word) ?? "high";
  const display = hasFeature(model, "hiddenThinking") && { display: "summarized" as const };
  // Else the service rejects the request where a summary took the place of old turns, say.
  const binding = hasFeature(model, "bindsThinking") && {
    block_binding: { prefix_mismatch_behavior: "drop_block" as const },
  };
  return { thinking: { type: "adaptive", ...display, ...binding }, output_config: { effort } };
}

/** Whether a request asks the service to leave out thinking that does not fit any more. */
export function dropsMismatches({ params: { thinking } }: Thinking): boolean {
  return thinking?.type === "adaptive" && thinking.block_binding !== undefined;
}

/**
 * The messages without thinking that the model rejects: its own, once the tools, the prompt or the
 * messages before it have changed, where the request cannot ask the service to leave it out: that
 * takes adaptive thinking. What a model notes between calls with its thinking switched off is thinking,
 * too: it goes back as long as nothing before it has changed, which `prefix` of a message shows.
 */
export function withoutBoundThinking(
  messages: readonly Message[],
  model: Model,
  thinking: Thinking,
  context: Pick<Context, "systemPrompt" | "tools"> = {},
): { messages: readonly Message[]; prefix?: string } {
  if (!hasFeature(model, "bindsThinking") || dropsMismatches(thinking)) return { messages };
  const isNoted = thinking.params.thinking?.type === "between_tools";
  const { systemPrompt, tools = [] } = context;
  let prefix = "";
  const extend = (part: unknown): void => {
    if (isNoted) prefix = hashId(prefix + JSON.stringify(part), PREFIX_CHARS);
  };
  extend([systemPrompt, ...tools.map((tool) => [tool.name, tool.description, tool.parameters])]);
  const sent = messages.map((message) => {
    const fits = message.role !== "assistant" || (isNoted && message.prefix === prefix);
    const left = fits ? message : withoutThinking(message);
    extend(describeSent(left));
    return left;
  });
  return { messages: sent, ...(isNoted && { prefix }) };
}

function withoutThinking(message: AssistantMessage): AssistantMessage {
  return { ...message, content: message.content.filter(({ type }) => type !== "thinking") };
}

/** What of a message the service gets. */
function describeSent(message: Message): unknown {
  const { role, content } = message;
  return role === "toolResult"
    ? [role, content, message.toolCallId, message.isError]
    : [role, content];
}

/** Switches thinking off on models that think by default, or else asks for as little as there is. */
function offParams(model: Model, forced: boolean): ThinkingParams {
  if (!hasFeature(model, "thinksByDefault")) return {};
  if (hasFeature(model, "offDisabled")) return { thinking: { type: "disabled" } };
  if (hasFeature(model, "offBetweenTools")) return { thinking: { type: "between_tools" } };
  return forced ? {} : adaptiveParams(model, "low");
}

/**
 * In the middle of a turn that began without thinking, the service refuses to begin with it,
 * but for models that think unasked.
 */
function mayThink(messages: readonly Message[], model: Model): boolean {
  if (messages.at(-1)?.role === "user") return true;
  if (hasFeature(model, "thinksByDefault")) return true;
  let first = messages.findLastIndex(({ role }) => role === "assistant");
  // Neighbors are one message there.
  while (messages[first - 1]?.role === "assistant") first--;
  const begun = messages[first];
  return begun?.role !== "assistant" || begun.content[0]?.type === "thinking";
}

/** Newer models take a level; the older ones a number of tokens. A quirk may say it. */
function thinksAdaptively(model: Model): boolean {
  const given = model.quirks?.["thinking"];
  if (given === "adaptive" || given === "budget") return given === "adaptive";
  return hasFeature(model, "adaptiveThinking");
}
