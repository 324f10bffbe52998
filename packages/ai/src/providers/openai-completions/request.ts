import type { StreamOptions } from "../../client/client.ts";
import {
  type Message,
  type Model,
  THINKING_LEVELS,
  type ThinkingLevel,
} from "../../messages/messages.ts";
import { toToolSchema } from "../../schema/tool-schema.ts";
import { addBreakpoints, type ChatMessage, chatMessages } from "./chat-messages.ts";
import { type ChatDialect, chatDialect } from "../services/chat-quirks.ts";
import { resolveService } from "../services/presets.ts";
import type { ApiRequest, RequestContext } from "../http/format.ts";
import { authHeaders } from "../http/headers.ts";
import { joinUrl } from "../http/url.ts";

/** More is asked for only by callers who want it: it has to fit the window with the input. */
const USUAL_MAX_TOKENS = 32_000;
/** Longer keys for a cache are refused. */
const MAX_CACHE_KEY_CHARS = 64;
/** Where a dialect has no word of its own for a level, this one is understood everywhere. */
const EFFORTS: Required<NonNullable<ChatDialect["efforts"]>> = {
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "high",
};

/** One request for a chat completion. */
export function writeRequest(request: RequestContext): ApiRequest {
  const { baseUrl, context, model, options, service } = request;
  const dialect = chatDialect(model, service);
  const messages = chatMessages(context.messages, model, dialect);
  if (context.systemPrompt?.trim()) {
    messages.unshift({ role: dialect.systemRole, content: context.systemPrompt });
  }
  const { cacheRetention = "short", sessionId } = options;
  if (dialect.cacheControl && cacheRetention !== "none") {
    addBreakpoints(messages, {
      type: "ephemeral",
      ...(cacheRetention === "long" && { ttl: "1h" }),
    });
  }
  const maxTokens = options.maxTokens ?? (dialect.alwaysLimit ? usualLimit(model) : undefined);
  const cached = sessionId !== undefined && cacheRetention !== "none";
  const header = cached && isHeaderValue(sessionId) ? dialect.sessionHeader : undefined;
  return {
    url: joinUrl(baseUrl, "/chat/completions"),
    headers: {
      ...authHeaders(request, "bearer"),
      ...(header !== undefined && sessionId !== undefined && { [header]: sessionId }),
    },
    body: {
      model: model.id,
      stream: true,
      ...(dialect.streamUsage && { stream_options: { include_usage: true } }),
      messages,
      ...(dialect.tools && toolParams(request, messages, dialect)),
      ...(maxTokens !== undefined && { [dialect.maxTokensField]: maxTokens }),
      ...(options.temperature !== undefined &&
        dialect.temperature && { temperature: options.temperature }),
      ...thinkingParams(model, options, dialect),
      ...(cached &&
        dialect.promptCacheKey && { prompt_cache_key: sessionId.slice(0, MAX_CACHE_KEY_CHARS) }),
      ...(cacheRetention === "long" && dialect.longCache && { prompt_cache_retention: "24h" }),
      ...dialect.extra,
    },
  };
}

/** The messages as this service takes them. */
export function formatMessages(messages: readonly Message[], model: Model): object[] {
  return chatMessages(messages, model, chatDialect(model, resolveService(model)));
}

function usualLimit({ maxTokens }: Model): number | undefined {
  return maxTokens === undefined ? undefined : Math.min(maxTokens, USUAL_MAX_TOKENS);
}

function isHeaderValue(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

function toolParams(
  { context, options }: RequestContext,
  messages: readonly ChatMessage[],
  { toolChoices }: ChatDialect,
): object {
  const tools = (context.tools ?? []).map(({ name, description, parameters }) =>
    functionTool(name, description, toToolSchema(parameters)),
  );
  if (tools.length > 0) {
    const { toolChoice: choice } = options;
    if (choice === "none") {
      return toolChoices.includes("none") ? { tools, tool_choice: "none" } : {};
    }
    if (typeof choice === "object" && toolChoices.includes("named")) {
      return { tools, tool_choice: { type: "function", function: { name: choice.name } } };
    }
    if (choice === "required" || typeof choice === "object") {
      const word = toolChoices.find((taken) => taken === "required" || taken === "any");
      return { tools, ...(word && { tool_choice: word }) };
    }
    return { tools, ...(choice && { tool_choice: choice }) };
  }
  // Some want every tool declared that the transcript has calls of.
  const calls = messages.flatMap(({ tool_calls }) => tool_calls ?? []);
  const names = new Set(calls.map((call) => call.function.name));
  const called = [...names].map((name) =>
    functionTool(name, "Not to be used any more.", { type: "object", properties: {} }),
  );
  return called.length > 0 && toolChoices.includes("none")
    ? { tools: called, tool_choice: "none" }
    : {};
}

function functionTool(name: string, description: string, parameters: object): object {
  return { type: "function", function: { name, description, parameters } };
}

function thinkingParams(model: Model, options: StreamOptions, dialect: ChatDialect): object {
  const { thinkingBudgets, thinkingLevel = "off" } = options;
  const { thinkingLevels } = model;
  if (thinkingLevel === "off") {
    const canBeOff = thinkingLevels?.includes("off") !== false;
    return dialect.thinkingOff && model.reasoning && canBeOff ? formatThinking(dialect) : {};
  }
  if (model.reasoning === false) return {};
  const budget = thinkingBudgets?.[thinkingLevel];
  const takesEffort = dialect.reasoning === "effort" || dialect.reasoning === "openrouter";
  // A service with words of its own knows which of them it takes.
  if (!thinkingLevels || !takesEffort || dialect.efforts) {
    return formatThinking(dialect, thinkingLevel, budget);
  }
  const level = nearestLevel(thinkingLevel, thinkingLevels);
  return formatThinking({ ...dialect, efforts: { [level]: level } }, level, budget);
}

type Level = Exclude<ThinkingLevel, "off">;

/** The least level that the model takes and that is enough, or else its highest. */
function nearestLevel(wanted: Level, known: readonly ThinkingLevel[]): Level {
  const levels = THINKING_LEVELS.filter(
    (level): level is Level => level !== "off" && known.includes(level),
  );
  const least = THINKING_LEVELS.indexOf(wanted);
  return levels.find((level) => THINKING_LEVELS.indexOf(level) >= least) ?? levels.at(-1) ?? wanted;
}

/** A level, or none at all, in the words of a dialect. */
function formatThinking(
  { reasoning, efforts, thinkingExtra }: ChatDialect,
  level?: Exclude<ThinkingLevel, "off">,
  budget?: number,
): object {
  const effort = level ? (efforts?.[level] ?? EFFORTS[level]) : "none";
  switch (reasoning) {
    case "effort":
      return { reasoning_effort: effort };
    case "openrouter":
      return { reasoning: budget === undefined ? { effort } : { max_tokens: budget } };
    case "thinking":
      if (!level) return { thinking: { type: "disabled" } };
      return {
        thinking: { type: "enabled", ...thinkingExtra },
        ...(efforts && { reasoning_effort: effort }),
      };
    case "enable_thinking":
      return {
        enable_thinking: level !== undefined,
        ...(budget !== undefined && { thinking_budget: budget }),
      };
    case "template":
      return { chat_template_kwargs: { enable_thinking: level !== undefined } };
    case "none":
      return {};
  }
}
