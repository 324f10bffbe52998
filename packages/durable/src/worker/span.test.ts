import { AsyncLocalStorage } from "node:async_hooks";
import { tracing } from "@gyre/agent";
import { callAll } from "@gyre/ai/testing";
import * as api from "@opentelemetry/api";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { durableTask } from "../tools/task.ts";
import { effectTool, scriptedAgent, temporaryUrls, withWorker } from "./harness.ts";

const newUrl = temporaryUrls("spans", afterAll);

interface Recorded {
  name: string;
  attributes: api.Attributes;
  id: api.SpanContext;
  parent: api.SpanContext | undefined;
  links: readonly string[];
  hasEnded: boolean;
}

const spans: Recorded[] = [];

/** Spans in the order of their start. */
class RecordingTracer implements api.Tracer {
  startSpan(name: string, options: api.SpanOptions = {}, context = api.context.active()): api.Span {
    const parent = api.trace.getSpanContext(context);
    const spanId = String(spans.length + 1).padStart(16, "0");
    const traceId = parent?.traceId ?? spanId.padStart(32, "a");
    const span: Recorded = {
      ...{ name, parent, id: { traceId, spanId, traceFlags: 1 }, hasEnded: false },
      attributes: { ...options.attributes },
      links: (options.links ?? []).map((link) => link.context.spanId),
    };
    spans.push(span);
    const wrapped = api.trace.wrapSpanContext(span.id);
    return Object.assign(Object.create(wrapped), {
      spanContext: () => span.id,
      setAttributes: (more: api.Attributes) => Object.assign(span.attributes, more),
      end: () => (span.hasEnded = true),
    });
  }
  startActiveSpan(): never {
    throw new Error("It is not used.");
  }
}

const storage = new AsyncLocalStorage<api.Context>();
const contextManager: api.ContextManager = {
  active: () => storage.getStore() ?? api.ROOT_CONTEXT,
  with: (context, call, self, ...args) =>
    storage.run(context, () => Reflect.apply(call, self, args)),
  bind: (_context, target) => target,
  enable: () => contextManager,
  disable: () => contextManager,
};
api.context.setGlobalContextManager(contextManager);
api.trace.setGlobalTracerProvider({ getTracer: () => new RecordingTracer() });

afterAll(() => {
  api.context.disable();
  api.trace.disable();
});
beforeEach(() => void spans.splice(0));

const TRACE = "b".repeat(32);
const traceparent = `00-${TRACE}-${"c".repeat(16)}-01`;
const activations = (): Recorded[] => spans.filter(({ name }) => name === "gyre.activation");

describe("the spans of a run", () => {
  it("are one for each activation, in the run's trace, each linked to the one before", async () => {
    const tools = [effectTool("pay", (to) => `paid ${to}`, { needsApproval: true })];
    const agent = scriptedAgent([callAll([["pay", { to: "a" }]]), "Done."], {
      ...{ tools, middleware: [tracing(api)] },
    });
    await withWorker(newUrl(), { agents: [agent], telemetry: api }, async (runs, worker) => {
      const run = await runs.start("Pay.", { agent: "office", id: "r", traceparent });
      await vi.waitFor(async () => expect((await run.info()).status).toBe("waiting"));
      const [call] = (await run.info()).pending;
      await run.decide({ [call?.toolCall.id ?? ""]: { type: "approve" } });
      await run.result();
      await vi.waitFor(() =>
        expect(activations().map((span) => span.hasEnded)).toEqual([true, true]),
      );
      const [first, second] = activations();
      expect(first).toMatchObject({
        parent: { traceId: TRACE, spanId: "c".repeat(16) },
        links: [],
        attributes: {
          "gyre.run": "r",
          "gyre.worker": worker.id,
          "gyre.activation": 1,
          "gyre.why": "start",
          "gyre.outcome": "parked",
        },
      });
      expect(second).toMatchObject({
        parent: { spanId: "c".repeat(16) },
        links: [first?.id.spanId],
        attributes: { "gyre.activation": 2, "gyre.why": "wake", "gyre.outcome": "ended" },
      });
      // What the agent's own tracing records is below them.
      const runSpans = spans.filter(({ name }) => name === "invoke_agent");
      expect(runSpans.map(({ parent }) => parent?.spanId)).toEqual([
        first?.id.spanId,
        second?.id.spanId,
      ]);
      expect(new Set(spans.map(({ id }) => id.traceId))).toEqual(new Set([TRACE]));
    });
  });

  it("of a child are in the trace of its parent", async () => {
    const task = durableTask({ agent: "helper" });
    const calls = callAll([[task.name, { prompt: "Help." }]]);
    const agents = [
      scriptedAgent([calls, "Done."], { tools: [task] }),
      scriptedAgent(["Helped."], { name: "helper" }),
    ];
    await withWorker(newUrl(), { agents, telemetry: api }, async (runs) => {
      const run = await runs.start("Go.", { agent: "office", traceparent });
      expect((await run.result()).text).toBe("Done.");
      await vi.waitFor(() => expect(activations().every((span) => span.hasEnded)).toBe(true));
      const helper = activations().filter(
        ({ attributes }) => attributes["gyre.agent"] === "helper",
      );
      expect(helper.map(({ parent }) => parent?.traceId)).toEqual([TRACE]);
    });
  });

  it("may fail, which ends no run", async () => {
    const reported: string[] = [];
    const onError = (_error: unknown, where: string): unknown => reported.push(where);
    const broken = {
      ...api,
      trace: {
        ...api.trace,
        getTracer: (): never => {
          throw new Error("There is no tracer.");
        },
      },
    };
    const options = { agents: [scriptedAgent(["Done."])], telemetry: broken, onError };
    await withWorker(newUrl(), options, async (runs) => {
      const run = await runs.start("Go.", { agent: "office" });
      expect((await run.result()).text).toBe("Done.");
      expect(reported).toEqual(["telemetry"]);
    });
  });
});
