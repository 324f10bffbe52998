import {
  type AssistantContent,
  type AssistantMessage,
  errorMessage,
  type Message,
  type Model,
  redact,
  listSecrets,
  type Usage,
  type UserContent,
} from "@gyre/ai";
import type { Middleware, RunInfo } from "../contract/middleware.ts";
import { createContainment, observe, type ErrorReport } from "./observe.ts";

/** What an attribute of a span can be. */
export type TelemetryValue = string | number | boolean | string[];
/** The attributes of a span, by name. */
export type TelemetryAttributes = Record<string, TelemetryValue | undefined>;

/** A context of OpenTelemetry, which is only handed on. */
export interface TelemetryContext {
  getValue(key: symbol): unknown;
}

/** What is used of a span of OpenTelemetry. */
export interface TelemetrySpan {
  setAttributes(attributes: TelemetryAttributes): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  end(): void;
}

/**
 * What is used of `@opentelemetry/api`: the module itself fits. Written out so that
 * neither its code nor its types are needed where there is no tracing.
 */
export interface OpenTelemetryApi {
  readonly SpanKind: { readonly INTERNAL: number; readonly CLIENT: number };
  readonly SpanStatusCode: { readonly ERROR: number };
  readonly trace: {
    getTracer(name: string): {
      startSpan(
        name: string,
        options?: { kind?: number; attributes?: TelemetryAttributes },
        context?: TelemetryContext,
      ): TelemetrySpan;
    };
    setSpan(context: TelemetryContext, span: TelemetrySpan): TelemetryContext;
  };
  readonly context: {
    active(): TelemetryContext;
    with<T>(context: TelemetryContext, call: () => T): T;
  };
}

export interface TracingOptions {
  /** Default `@gyre/agent`. */
  tracerName?: string;
  /** Goes into the name of a run's span. */
  agentName?: string;
  /**
   * Puts messages, arguments, results and the texts of errors into the spans: every
   * request then costs time and space for its whole history. Default false: none of
   * it, ever.
   */
  captureContent?: boolean;
}

/**
 * OpenTelemetry spans by the conventions for generative AI: `invoke_agent` for a run,
 * and in it `chat` for each request and `execute_tool` for each call of a tool. Model
 * and tool are called with their span as the active one, so that spans of theirs nest.
 * What fails or is aborted has `error.type`; a suspended call has `gyre.suspended`; a
 * request to a fallback model has `gyre.fallback.from` and `gyre.fallback.kind`.
 *
 * @example
 * import * as api from "@opentelemetry/api";
 * new Agent({ middleware: [tracing(api)] });
 */
export function tracing(api: OpenTelemetryApi, options: TracingOptions = {}): Middleware {
  const { tracerName = "@gyre/agent", agentName, captureContent = false } = options;
  const { SpanKind, SpanStatusCode } = api;
  const tracer = api.trace.getTracer(tracerName);
  const runs = new WeakMap<RunInfo, TracedRun>();

  const start = (
    name: string,
    kind: number,
    attributes: TelemetryAttributes,
    parent: TelemetrySpan | undefined,
  ): { span: TelemetrySpan; within: <T>(next: () => T) => T } => {
    const active = api.context.active();
    const span = tracer.startSpan(
      name,
      { kind, attributes: present(attributes) },
      parent ? api.trace.setSpan(active, parent) : active,
    );
    return { span, within: (next) => api.context.with(api.trace.setSpan(active, span), next) };
  };
  const end = (
    span: TelemetrySpan,
    attributes: TelemetryAttributes,
    error: ErrorReport | undefined,
    run: RunInfo,
  ): void => {
    span.setAttributes(present({ ...attributes, "error.type": error?.kind }));
    if (error) {
      const secrets = [...(runs.get(run)?.secrets ?? [])];
      const words = captureContent &&
        error.message !== undefined && { message: redact(error.message, secrets) };
      span.setStatus({ code: SpanStatusCode.ERROR, ...words });
    }
    span.end();
  };
  /** An attribute for the content that `of` gives, if that is wanted. */
  const content = (name: string, of: () => unknown): TelemetryAttributes =>
    captureContent ? { [name]: json(of()) } : {};

  return observe(createContainment("Tracing"), {
    run(run) {
      const { span } = start(
        agentName === undefined ? "invoke_agent" : `invoke_agent ${agentName}`,
        SpanKind.INTERNAL,
        {
          "gen_ai.operation.name": "invoke_agent",
          "gen_ai.agent.name": agentName,
          "gen_ai.conversation.id": run.sessionId,
          ...modelAttributes(run.model),
        },
        undefined,
      );
      runs.set(run, { span, calls: new Map(), secrets: new Set() });
      return {
        settled({ end: event, error }) {
          const { stop = "sink", turns, usage = {} } = event ?? {};
          const attributes = { "gyre.stop": stop, "gyre.turns": turns, ...usageAttributes(usage) };
          end(span, attributes, error, run);
        },
      };
    },

    model({ model, context, options: request, run }) {
      const { systemPrompt } = context;
      for (const secret of listSecrets(model, request)) runs.get(run)?.secrets.add(secret);
      const { span, within } = start(
        `chat ${model.id}`,
        SpanKind.CLIENT,
        {
          "gen_ai.operation.name": "chat",
          "gen_ai.conversation.id": run.sessionId,
          ...modelAttributes(model),
          ...fallbackAttributes(run),
          ...serverAttributes(model.baseUrl),
          "gen_ai.request.max_tokens": request.maxTokens,
          "gen_ai.request.temperature": request.temperature,
          ...(systemPrompt !== undefined &&
            content("gen_ai.system_instructions", () => toParts(systemPrompt))),
          ...content("gen_ai.input.messages", () => context.messages.map(toInputMessage)),
        },
        runs.get(run)?.span,
      );
      return {
        within,
        settled({ message, error }) {
          const attributes = message && {
            ...responseAttributes(message),
            ...content("gen_ai.output.messages", () => [
              { ...toInputMessage(message), finish_reason: finishReason(message) },
            ]),
          };
          end(span, attributes ?? {}, error, run);
        },
      };
    },

    tool({ tool, toolCall, args, parentId, run }) {
      const state = runs.get(run);
      // The parent may be a call of another run, in whose span this run's is.
      const isNested = parentId !== undefined && toolCall.id.startsWith(`${parentId}/`);
      const caller = isNested ? state?.calls.get(parentId) : undefined;
      const { span, within } = start(
        `execute_tool ${tool.name}`,
        SpanKind.INTERNAL,
        {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": tool.name,
          "gen_ai.tool.call.id": toolCall.id,
          "gen_ai.tool.description": tool.description,
          "gen_ai.tool.type": "function",
          ...content("gen_ai.tool.call.arguments", () => args),
        },
        caller ?? state?.span,
      );
      state?.calls.set(toolCall.id, span);
      return {
        within,
        settled({ result, suspended, error }) {
          state?.calls.delete(toolCall.id);
          const attributes = {
            "gyre.suspended": suspended === undefined ? undefined : true,
            ...(result && content("gen_ai.tool.call.result", () => result.content.map(part))),
          };
          end(span, attributes, error, run);
        },
      };
    },
  });
}

interface TracedRun {
  readonly span: TelemetrySpan;
  readonly calls: Map<string, TelemetrySpan>;
  /** A service may repeat them in its error message. */
  readonly secrets: Set<string>;
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

function modelAttributes({ id, provider }: Model): TelemetryAttributes {
  return {
    "gen_ai.provider.name": PROVIDER_NAMES[provider] ?? provider,
    "gen_ai.request.model": id,
  };
}

/** Which model was to be asked in place of the one in use, and why it was not. */
function fallbackAttributes(run: RunInfo): TelemetryAttributes {
  const last = run.fallbacks.at(-1);
  if (!last) return {};
  const { from, kind } = last;
  return { "gyre.fallback.from": `${from.provider}/${from.id}`, "gyre.fallback.kind": kind };
}

function serverAttributes(baseUrl: string | undefined): TelemetryAttributes {
  if (baseUrl === undefined || !URL.canParse(baseUrl)) return {};
  const { hostname, port, protocol } = new URL(baseUrl);
  const standard = protocol === "http:" ? 80 : 443;
  return { "server.address": hostname, "server.port": port === "" ? standard : Number(port) };
}

function responseAttributes(message: AssistantMessage): TelemetryAttributes {
  const { failure, model, responseId, servedModel, usage } = message;
  return {
    "gen_ai.response.id": responseId,
    // A response that failed may not have come from any model.
    "gen_ai.response.model": servedModel ?? (failure ? undefined : model),
    "gen_ai.response.finish_reasons": [finishReason(message)],
    ...usageAttributes(usage),
  };
}

function finishReason({ failure, stopReason }: AssistantMessage): string {
  if (failure?.kind === "refused") return "content_filter";
  return stopReason === "toolUse" ? "tool_call" : stopReason;
}

/** The conventions count what a cache had or took among the input; `Usage` does not. */
function usageAttributes(usage: Usage): TelemetryAttributes {
  const { input, output, cacheRead, cacheWrite, reasoning } = usage;
  const inputs = [input, cacheRead, cacheWrite].filter((tokens) => tokens !== undefined);
  return {
    "gen_ai.usage.input_tokens":
      inputs.length > 0 ? inputs.reduce((sum, tokens) => sum + tokens, 0) : undefined,
    "gen_ai.usage.output_tokens": output,
    "gen_ai.usage.cache_read.input_tokens": cacheRead,
    "gen_ai.usage.cache_creation.input_tokens": cacheWrite,
    "gen_ai.usage.reasoning.output_tokens": reasoning,
  };
}

function present(attributes: TelemetryAttributes): TelemetryAttributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}

type Part = Record<string, unknown>;

function toInputMessage(message: Message): Part {
  switch (message.role) {
    case "user":
      return { role: "user", parts: toParts(message.content) };
    case "assistant":
      return { role: "assistant", parts: message.content.flatMap(parts) };
    case "toolResult": {
      const response = message.content.map(part);
      const answer: Part = { type: "tool_call_response", id: message.toolCallId, response };
      return { role: "tool", parts: [answer] };
    }
  }
}

function toParts(content: string | readonly UserContent[]): Part[] {
  return typeof content === "string" ? [{ type: "text", content }] : content.map(part);
}

function parts(block: AssistantContent): Part[] {
  switch (block.type) {
    case "text":
    case "image":
      return [part(block)];
    case "thinking":
      return block.redacted ? [] : [{ type: "reasoning", content: block.thinking }];
    case "toolCall": {
      const { id, name, rawArguments } = block;
      return [{ type: "tool_call", id, name, arguments: rawArguments ?? block.arguments }];
    }
    case "serviceTool": {
      const { id, name, input, output } = block;
      const asked = { type: "server_tool_call", id, name, server_tool_call: { type: name, input } };
      if (output === undefined) return [asked];
      const response = { type: name, output };
      return [
        asked,
        { type: "server_tool_call_response", id, server_tool_call_response: response },
      ];
    }
  }
}

function part(block: UserContent): Part {
  if (block.type === "text") return { type: "text", content: block.text };
  return { type: "blob", modality: "image", mime_type: block.mimeType, content: block.data };
}

/** Arguments that a schema made of what the model sent may be no JSON. */
function json(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    return `Not recorded: ${errorMessage(error)}`;
  }
}
