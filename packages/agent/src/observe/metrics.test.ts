import { AssistantMessageEventStream, emptyAssistantMessage, type StreamFn } from "@gyre/ai";
import { fail, manualClock, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import * as api from "@opentelemetry/api";
import { describe, expect, it } from "vitest";
import { runAgentLoop } from "../loop/loop.ts";
import { user } from "../testing/play.ts";
import type { AgentLoopConfig } from "../contract/types.ts";
import type { TelemetryAttributes } from "./attributes.ts";
import {
  metrics,
  type MetricsOptions,
  type OpenTelemetryMetricsApi,
  type TelemetryMetricOptions,
} from "./metrics.ts";

interface Recorded {
  name: string;
  value: number;
  attributes: TelemetryAttributes;
}

class Meter {
  readonly records: Recorded[] = [];
  readonly instruments = new Map<string, TelemetryMetricOptions>();
  readonly api: OpenTelemetryMetricsApi = {
    metrics: {
      getMeter: () => ({
        createHistogram: (name, options = {}) => {
          this.instruments.set(name, options);
          return {
            record: (value, attributes = {}) => void this.records.push({ name, value, attributes }),
          };
        },
      }),
    },
  };

  values(name: string): number[] {
    return this.records.filter((record) => record.name === name).map(({ value }) => value);
  }
}

async function measure(
  script: readonly ScriptStep[],
  config: Partial<AgentLoopConfig> = {},
  options: MetricsOptions = {},
  streamFn?: StreamFn,
): Promise<Meter> {
  const meter = new Meter();
  const clock = manualClock();
  const protocol = scriptedModel(script);
  const running = runAgentLoop(
    [user("The secret question")],
    { messages: [] },
    {
      model: protocol.model,
      protocol,
      clock,
      random: () => 0,
      middleware: [metrics(meter.api, { clock, ...options })],
      ...config,
    },
    () => {},
    undefined,
    streamFn,
  );
  await Promise.all([running, clock.advance(1_000)]);
  return meter;
}

describe("metrics of a request", () => {
  const model = { ...scriptedModel([]).model, price: { input: 2, output: 10, cacheRead: 1 } };
  const usage = { input: 900_000, output: 100_000, cacheRead: 100_000 };

  it("tokens by type, duration and cost, with the attributes of the conventions", async () => {
    const parts = { parts: ["Hello"], usage, servedModel: "m-2", delayMs: 40 };
    const { records } = await measure([parts], { model });
    const attributes = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "scripted",
      "gen_ai.request.model": "scripted",
      "gen_ai.response.model": "m-2",
    };
    expect(records.filter(({ name }) => !name.endsWith("first_chunk"))).toEqual([
      { name: "gen_ai.client.operation.duration", value: 0.04, attributes },
      {
        name: "gen_ai.client.token.usage",
        value: 1_000_000,
        attributes: { ...attributes, "gen_ai.token.type": "input" },
      },
      {
        name: "gen_ai.client.token.usage",
        value: 100_000,
        attributes: { ...attributes, "gen_ai.token.type": "output" },
      },
      { name: "gyre.client.operation.cost", value: expect.closeTo(2.9) as number, attributes },
    ]);
  });

  it("a failed request has its kind, each attempt its own record", async () => {
    const busy = fail("The secret question", { kind: "overloaded", status: 529 });
    const meter = await measure([busy, "Hello"]);
    const types = meter.records
      .filter(({ name }) => name === "gen_ai.client.operation.duration")
      .map(({ attributes }) => attributes["error.type"]);
    expect(types).toEqual(["overloaded", undefined]);
    expect(JSON.stringify(meter.records)).not.toContain("secret");
  });

  it("no cost where the price is not known, no tokens where they were not counted", async () => {
    const meter = await measure(["Hello"]);
    expect(meter.values("gyre.client.operation.cost")).toEqual([]);
    expect(meter.values("gen_ai.client.token.usage")).toEqual([]);
  });

  it("attributes of one's own, of the run", async () => {
    const meter = await measure(
      ["Hello"],
      { sessionId: "s1" },
      { attributes: ({ sessionId }) => ({ tenant: `of ${sessionId}` }) },
    );
    for (const { attributes } of meter.records) expect(attributes["tenant"]).toBe("of s1");
    expect(meter.records).not.toEqual([]);
  });

  it("the time to the first chunk, and the address that answered", async () => {
    const clock = manualClock();
    const streamFn: StreamFn = (asked, _context, options) => {
      const stream = new AssistantMessageEventStream();
      const partial = emptyAssistantMessage(asked, 0);
      const message = { ...partial, content: [{ type: "text" as const, text: "One" }] };
      const url = "https://api.test/v1";
      void options?.onResponse?.({ status: 200, headers: {}, url }, asked);
      stream.push({ type: "start", partial });
      clock.after(250, () => {
        stream.push({ type: "text_start", contentIndex: 0, partial: message });
        stream.push({ type: "text_delta", contentIndex: 0, delta: "One", partial: message });
      });
      clock.after(900, () => stream.push({ type: "done", reason: "stop", message }));
      return stream;
    };
    const running = measure([], { clock }, { clock }, streamFn);
    await clock.advance(1_000);
    const meter = await running;
    expect(meter.values("gen_ai.client.operation.time_to_first_chunk")).toEqual([0.25]);
    expect(meter.values("gen_ai.client.operation.duration")).toEqual([0.9]);
    expect(meter.records[0]?.attributes).toMatchObject({
      "server.address": "api.test",
      "server.port": 443,
    });
  });

  it("units, and the buckets that the conventions advise", async () => {
    const { instruments } = await measure(["Hello"]);
    expect(instruments.get("gen_ai.client.token.usage")).toMatchObject({
      unit: "{token}",
      advice: {
        explicitBucketBoundaries: [
          1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
        ],
      },
    });
    for (const name of ["duration", "time_to_first_chunk"]) {
      expect(instruments.get(`gen_ai.client.operation.${name}`)).toMatchObject({
        unit: "s",
        advice: {
          explicitBucketBoundaries: [
            0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
          ],
        },
      });
    }
  });

  it("the module of OpenTelemetry fits, and does nothing without an SDK", async () => {
    const protocol = scriptedModel(["Hello"]);
    const messages = await runAgentLoop(
      [user("Go")],
      { messages: [] },
      { model: protocol.model, protocol, middleware: [metrics(api)] },
      () => {},
    );
    expect(messages).toHaveLength(2);
  });
});
