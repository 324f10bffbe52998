import { checkShape } from "#checks";
import { type Clock, redact, listSecrets, systemClock } from "@gyre/ai";
import type { Middleware, RunInfo } from "../contract/middleware.ts";
import {
  fallbackAttributes,
  modelAttributes,
  type OwnAttributes,
  present,
  resolveAttributes,
  responseAttributes,
  serverAttributes,
  type TelemetryAttributes,
  usageAttributes,
} from "./attributes.ts";
import {
  json,
  listNewest,
  part,
  toDefinition,
  toInputMessage,
  toOutputMessage,
  toParts,
} from "./content.ts";
import { createContainment, observe, type ErrorReport } from "./observe.ts";

export type { OwnAttributes, TelemetryAttributes, TelemetryValue } from "./attributes.ts";

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
   * Puts messages, definitions of tools, arguments, results and the texts of errors into the
   * spans: every request then costs time and space for its whole history. Default false: none
   * of it, ever.
   */
  captureContent?: boolean;
  /**
   * Attributes of your own for every span of a run, such as `user.id` or a tenant. A function is
   * called when the run starts.
   */
  attributes?: OwnAttributes;
  /** For the time to the first chunk; the system's, if absent. */
  clock?: Clock;
}

/**
 * OpenTelemetry spans by the conventions for generative AI: `invoke_agent` for a run,
 * and in it `chat` for each request and `execute_tool` for each call of a tool. Model
 * and tool are called with their span as the active one, so that spans of theirs nest.
 * What fails or is aborted has `error.type` and a status that says no more than that; a call of
 * an unknown tool, or with arguments that are not valid, has a span as well. A suspended call has
 * `gyre.suspended`; a request to a fallback model has `gyre.fallback.from` and
 * `gyre.fallback.kind`; the cost of a request or a run in dollars is `gyre.usage.cost`.
 *
 * @example
 * import * as api from "@opentelemetry/api";
 * new Agent({ middleware: [tracing(api)] });
 */
export function tracing(api: OpenTelemetryApi, options: TracingOptions = {}): Middleware {
  checkShape("tracing", api);
  const { tracerName = "@gyre/agent", agentName, captureContent = false } = options;
  const { attributes: own = {}, clock = systemClock } = options;
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
      const text = captureContent ? error.message : undefined;
      const message = text === undefined ? describeError(error) : redact(text, secrets);
      span.setStatus({ code: SpanStatusCode.ERROR, message });
    }
    span.end();
  };
  /** What all spans of a run have. */
  const shared = (run: RunInfo): TelemetryAttributes => ({
    ...runs.get(run)?.attributes,
    "gen_ai.conversation.id": run.sessionId,
  });
  /** An attribute for the content that `of` gives, if that is wanted. */
  const content = (name: string, of: () => unknown): TelemetryAttributes =>
    captureContent ? { [name]: json(of()) } : {};

  return observe(createContainment("Tracing"), {
    run(run) {
      const attributes = resolveAttributes(own, run);
      const { span } = start(
        agentName === undefined ? "invoke_agent" : `invoke_agent ${agentName}`,
        SpanKind.INTERNAL,
        {
          ...attributes,
          "gen_ai.operation.name": "invoke_agent",
          "gen_ai.agent.name": agentName,
          "gen_ai.conversation.id": run.sessionId,
          ...modelAttributes(run.model),
        },
        undefined,
      );
      runs.set(run, { span, attributes, calls: new Map(), secrets: new Set(), isAsked: false });
      return {
        settled({ end: event, error }) {
          const { stop = "sink", turns, usage = {}, finalMessage } = event ?? {};
          const outcome = {
            "gyre.stop": stop,
            "gyre.turns": turns,
            ...usageAttributes(usage),
            ...(finalMessage &&
              content("gen_ai.output.messages", () => [toOutputMessage(finalMessage)])),
          };
          end(span, outcome, error, run);
        },
      };
    },

    model({ model, context, options: request, run }) {
      const { systemPrompt, tools = [] } = context;
      const state = runs.get(run);
      for (const secret of listSecrets(model, request)) state?.secrets.add(secret);
      const offered = {
        ...(systemPrompt !== undefined &&
          content("gen_ai.system_instructions", () => toParts(systemPrompt))),
        ...(tools.length > 0 && content("gen_ai.tool.definitions", () => tools.map(toDefinition))),
      };
      if (state && !state.isAsked) {
        state.isAsked = true;
        const given = (): unknown => listNewest(context.messages).map(toInputMessage);
        state.span.setAttributes({ ...offered, ...content("gen_ai.input.messages", given) });
      }
      const startedAt = clock.now();
      let firstContentMs: number | undefined;
      let server = serverAttributes(model.baseUrl);
      const { span, within } = start(
        `chat ${model.id}`,
        SpanKind.CLIENT,
        {
          ...shared(run),
          "gen_ai.operation.name": "chat",
          ...modelAttributes(model),
          ...fallbackAttributes(run),
          ...server,
          "gen_ai.request.max_tokens": request.maxTokens,
          "gen_ai.request.temperature": request.temperature,
          ...offered,
          ...content("gen_ai.input.messages", () => context.messages.map(toInputMessage)),
        },
        state?.span,
      );
      return {
        within,
        firstContent() {
          firstContentMs ??= clock.now() - startedAt;
        },
        responded(url) {
          server = serverAttributes(url);
        },
        settled({ message, error }) {
          const attributes = {
            ...server,
            "gen_ai.response.time_to_first_chunk":
              firstContentMs === undefined ? undefined : firstContentMs / 1000,
            ...(message && {
              ...responseAttributes(message),
              ...content("gen_ai.output.messages", () => [toOutputMessage(message)]),
            }),
          };
          end(span, attributes, error, run);
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
          ...shared(run),
          ...toolAttributes(tool.name, toolCall.id),
          "gen_ai.tool.description": tool.description,
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

    withheld({ toolCall, parentId, run }, { result, suspended, error }) {
      const state = runs.get(run);
      const caller = parentId === undefined ? undefined : state?.calls.get(parentId);
      const { id, name, rawArguments } = toolCall;
      const { span } = start(
        `execute_tool ${name}`,
        SpanKind.INTERNAL,
        {
          ...shared(run),
          ...toolAttributes(name, id),
          ...content("gen_ai.tool.call.arguments", () => rawArguments ?? toolCall.arguments),
        },
        caller ?? state?.span,
      );
      const attributes = {
        "gyre.suspended": suspended === undefined ? undefined : true,
        ...(result && content("gen_ai.tool.call.result", () => result.content.map(part))),
      };
      end(span, attributes, error, run);
    },
  });
}

function toolAttributes(name: string, id: string): TelemetryAttributes {
  return {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": name,
    "gen_ai.tool.call.id": id,
    "gen_ai.tool.type": "function",
  };
}

/** An error without content: what a service or a tool says may repeat what it was given. */
function describeError({ kind, status }: ErrorReport): string {
  return status === undefined ? kind : `${kind} (HTTP ${status})`;
}

interface TracedRun {
  readonly span: TelemetrySpan;
  /** Those of the application. */
  readonly attributes: TelemetryAttributes;
  /** A request was made. */
  isAsked: boolean;
  readonly calls: Map<string, TelemetrySpan>;
  /** A service may repeat them in its error message. */
  readonly secrets: Set<string>;
}
