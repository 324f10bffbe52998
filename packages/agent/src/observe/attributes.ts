import { type AssistantMessage, type Model, type Usage, toUrl } from "@gyre/ai";
import type { RunInfo } from "../contract/middleware.ts";

/** What an attribute of a span or a metric can be. */
export type TelemetryValue = string | number | boolean | string[];
/** Attributes by name. */
export type TelemetryAttributes = Record<string, TelemetryValue | undefined>;

/** Attributes of an application's own: the same for all runs, or found when a run starts. */
export type OwnAttributes = TelemetryAttributes | ((run: RunInfo) => TelemetryAttributes);

export function resolveAttributes(own: OwnAttributes, run: RunInfo): TelemetryAttributes {
  return typeof own === "function" ? own(run) : own;
}

/** The conventions' own names of services, where ours differ. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = {
  "amazon-bedrock": "aws.bedrock",
  "azure-openai": "azure.ai.openai",
  google: "gcp.gemini",
  "google-vertex": "gcp.vertex_ai",
  mistral: "mistral_ai",
  moonshot: "moonshot_ai",
  xai: "x_ai",
};

export function modelAttributes({ id, provider }: Model): TelemetryAttributes {
  return {
    "gen_ai.provider.name": PROVIDER_NAMES[provider] ?? provider,
    "gen_ai.request.model": id,
  };
}

/** Which model was to be asked in place of the one in use, and why it was not. */
export function fallbackAttributes(run: RunInfo): TelemetryAttributes {
  const last = run.fallbacks.at(-1);
  if (!last) return {};
  const { from, kind } = last;
  return { "gyre.fallback.from": `${from.provider}/${from.id}`, "gyre.fallback.kind": kind };
}

export function serverAttributes(baseUrl: string | undefined): TelemetryAttributes {
  const url = baseUrl === undefined ? undefined : toUrl(baseUrl);
  if (!url) return {};
  const { hostname, port, protocol } = url;
  const standard = protocol === "http:" ? 80 : 443;
  return { "server.address": hostname, "server.port": port === "" ? standard : Number(port) };
}

export function responseAttributes(message: AssistantMessage): TelemetryAttributes {
  const { failure, model, responseId, servedModel, usage } = message;
  return {
    "gen_ai.response.id": responseId,
    // A response that failed may not have come from any model.
    "gen_ai.response.model": servedModel ?? (failure ? undefined : model),
    "gen_ai.response.finish_reasons": [finishReason(message)],
    ...usageAttributes(usage),
  };
}

export function finishReason({ failure, stopReason }: AssistantMessage): string {
  if (failure?.kind === "refused") return "content_filter";
  return stopReason === "toolUse" ? "tool_call" : stopReason;
}

/** The conventions count what a cache had or took among the input; `Usage` does not. */
export function usageAttributes(usage: Usage): TelemetryAttributes {
  const { input, output, cacheRead, cacheWrite, reasoning } = usage;
  const inputs = [input, cacheRead, cacheWrite].filter((tokens) => tokens !== undefined);
  return {
    "gen_ai.usage.input_tokens":
      inputs.length > 0 ? inputs.reduce((sum, tokens) => sum + tokens, 0) : undefined,
    "gen_ai.usage.output_tokens": output,
    "gen_ai.usage.cache_read.input_tokens": cacheRead,
    "gen_ai.usage.cache_creation.input_tokens": cacheWrite,
    "gen_ai.usage.reasoning.output_tokens": reasoning,
    "gyre.usage.cost": usage.cost?.total,
  };
}

export function present(attributes: TelemetryAttributes): TelemetryAttributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}
