import type { TelemetryAttributes, TelemetryContext, TelemetrySpan } from "@gyre/agent";
import type { Claim, RunRow } from "../contract/store.ts";

/** What identifies a span in other processes. */
export interface SpanIdentity {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

export interface IdentifiedSpan extends TelemetrySpan {
  spanContext(): SpanIdentity;
}

/** What is used of `@opentelemetry/api`: the module itself fits. */
export interface WorkerTelemetry {
  readonly ROOT_CONTEXT: TelemetryContext;
  readonly SpanStatusCode: { readonly ERROR: number };
  readonly trace: {
    getTracer(name: string): {
      startSpan(
        name: string,
        options?: { attributes?: TelemetryAttributes; links?: { context: SpanIdentity }[] },
        context?: TelemetryContext,
      ): IdentifiedSpan;
    };
    setSpan(context: TelemetryContext, span: IdentifiedSpan): TelemetryContext;
    setSpanContext(context: TelemetryContext, identity: SpanIdentity): TelemetryContext;
  };
  readonly context: { with<T>(context: TelemetryContext, call: () => T): T };
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const NO_TRACE = /^0+$/;
const HEX = 16;

/**
 * Works within a span `gyre.activation`, whose parent is the run's trace, and which is linked to the
 * activation before. `act` gets what the next one is linked to. What fails in the telemetry is
 * reported, and the work goes on.
 */
export async function traceActivation<T extends string>(
  telemetry: WorkerTelemetry,
  { claim, row }: { claim: Claim; row: RunRow },
  report: (error: unknown, where: string) => void,
  act: (span: string | undefined) => Promise<T>,
): Promise<T> {
  const contain = <R>(call: () => R): R | undefined => {
    try {
      return call();
    } catch (error) {
      report(error, "telemetry");
      return undefined;
    }
  };
  const started = contain(() => startSpan(telemetry, claim, row));
  if (!started) return act(undefined);
  const { span, context, identity } = started;
  try {
    const outcome = await telemetry.context.with(context, () => act(identity));
    contain(() => span.setAttributes({ "gyre.outcome": outcome }));
    return outcome;
  } catch (error) {
    const type = error instanceof Error ? error.name : typeof error;
    contain(() => span.setAttributes({ "error.type": type }));
    contain(() => span.setStatus({ code: telemetry.SpanStatusCode.ERROR, message: type }));
    throw error;
  } finally {
    contain(() => span.end());
  }
}

function startSpan(
  { trace, ROOT_CONTEXT }: WorkerTelemetry,
  claim: Claim,
  row: RunRow,
): { span: IdentifiedSpan; context: TelemetryContext; identity: string | undefined } {
  const parent = parseTrace(row.traceparent);
  const before = parseTrace(row.span);
  const root = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
  const attributes = {
    "gyre.run": row.id,
    "gyre.agent": claim.agent,
    "gyre.worker": claim.worker,
    "gyre.activation": claim.token,
    "gyre.why": explainActivation(claim, row),
    "gen_ai.conversation.id": claim.session,
  };
  const options = { attributes, ...(before && { links: [{ context: before }] }) };
  const span = trace.getTracer("@gyre/durable").startSpan("gyre.activation", options, root);
  return { span, context: trace.setSpan(root, span), identity: formatTrace(span.spanContext()) };
}

/** `takeover`: a worker died with it. `wake`: it had waited, or was released. */
function explainActivation({ deaths }: Claim, { activations }: RunRow): string {
  if (deaths > 0) return "takeover";
  return activations > 1 ? "wake" : "start";
}

function parseTrace(text: string | undefined): (SpanIdentity & { isRemote: true }) | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? "") ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags ?? "", HEX), isRemote: true };
}

/** Nothing where nothing records spans. */
function formatTrace({ traceId, spanId, traceFlags }: SpanIdentity): string | undefined {
  if (NO_TRACE.test(traceId)) return undefined;
  return `00-${traceId}-${spanId}-${traceFlags.toString(HEX).padStart(2, "0")}`;
}
