import type { StreamOptions } from "../../client/client.ts";
import type { Message, Model } from "../../messages/messages.ts";
import { toToolSchema } from "../../schema/tool-schema.ts";
import { addBreakpoints, type ChatMessage, chatMessages } from "./chat-messages.ts";
import { type ChatDialect, chatDialect } from "../services/chat-quirks.ts";
import { resolveService } from "../services/presets.ts";
import { findEffortWord, nearestLevel } from "../services/thinking-level.ts";
import type { ApiRequest, RequestContext } from "../http/format.ts";
import { authHeaders } from "../http/headers.ts";
import { joinUrl } from "../http/url.ts";

/** More is asked for only by callers who want it: it has to fit the window with the input. */
const USUAL_MAX_TOKENS = 32_000;
/** Longer keys for a cache are refused. */
const MAX_CACHE_KEY_CHARS = 64;
/** What a model is asked with of which nothing is known, in a dialect without words of its own. */
const EFFORTS: Required<NonNullable<ChatDialect["efforts"]>> = {
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "high",
  max: "high",
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
  const { thinkingBudgets, thinkingLevel: wanted = "off" } = options;
  const { thinkingLevels: known, reasoning } = model;
  if (reasoning === false) return {};
  if (wanted === "off") {
    const canBeOff = known ? known.includes("off") : dialect.thinkingOff === true && reasoning;
    return canBeOff ? formatThinking({ ...dialect, thinkingOff: true }) : {};
  }
  const budget = thinkingBudgets?.[wanted];
  if (!known) {
    return formatThinking(dialect, dialect.efforts?.[wanted] ?? EFFORTS[wanted], budget);
  }
  const level = nearestLevel(wanted, known);
  if (level === undefined) return {};
  const thinkingOff = known.includes("off");
  return formatThinking({ ...dialect, thinkingOff }, findEffortWord(model, level), budget);
}

/** A word for a level, or no level at all, in the way of a dialect. Empty: to think, and no word for how much. */
function formatThinking(
  { reasoning, efforts, thinkingExtra, thinkingOff }: ChatDialect,
  effort?: string,
  budget?: number,
): object {
  const word = effort === "" ? {} : { reasoning_effort: effort ?? "none" };
  switch (reasoning) {
    case "effort":
      return word;
    case "openrouter":
      if (budget !== undefined) return { reasoning: { max_tokens: budget } };
      return { reasoning: effort === "" ? { enabled: true } : { effort: effort ?? "none" } };
    case "thinking":
      if (effort === undefined) return { thinking: { type: "disabled" } };
      return {
        thinking: { type: "enabled", ...thinkingExtra },
        ...(efforts && word),
      };
    case "switch":
      return {
        ...(thinkingOff && { reasoning: { enabled: effort !== undefined } }),
        ...(effort && word),
      };
    case "enable_thinking":
      return {
        enable_thinking: effort !== undefined,
        ...(budget !== undefined && { thinking_budget: budget }),
      };
    case "template":
      return { chat_template_kwargs: { enable_thinking: effort !== undefined } };
    case "none":
      return {};
  }
}
