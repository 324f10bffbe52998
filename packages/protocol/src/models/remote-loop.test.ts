import { Agent, type AgentEvent, type AgentTool } from "@gyre/agent";
import { type ProtocolClient } from "@gyre/ai";
import {
  call,
  cutOff,
  fail,
  say,
  type ScriptAnswer,
  type ScriptPart,
  serviceTool,
  stall,
  think,
  unfinished,
} from "@gyre/ai/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ModelWire } from "../testing/model-wire.ts";

const LONG_MS = 100_000;

const tools: AgentTool[] = [
  { name: "fast", description: "", parameters: { type: "object" }, execute: () => "done" },
  {
    name: "throws",
    description: "",
    parameters: { type: "object" },
    execute: () => {
      throw new Error("boom");
    },
  },
];

interface World {
  script: readonly ScriptAnswer[];
  abortAtMs?: number;
  cuts?: readonly number[];
}

/** A run by the clock, with the model in process or behind the wire. */
async function run(world: World, isRemote: boolean): Promise<AgentEvent[]> {
  const { script, abortAtMs, cuts = [] } = world;
  const wire = new ModelWire({
    script: (_context, _options, index) => script[index] ?? "Done",
    scripted: { delayMs: 1, betweenMs: 1, chunkSize: 3 },
    cuts: isRemote ? cuts : [],
  });
  // So that no time passes in one of them alone.
  const connected = wire.peer.connect();
  await wire.clock.advance(0);
  await connected;
  const protocol: ProtocolClient = isRemote ? wire.client : wire.model;
  const agent = new Agent({
    protocol,
    clock: wire.clock,
    random: () => 0.5,
    retry: { maxRetries: 2, baseDelayMs: 10 },
    watchdog: { contentMs: 20_000 },
    limits: { maxTurns: 6 },
    model: wire.model.model,
    tools,
  });
  const events: AgentEvent[] = [];
  agent.subscribe((event) => void events.push(structuredClone(event)));
  if (abortAtMs !== undefined) wire.clock.after(abortAtMs + 0.5, () => agent.abort());
  const done = agent.prompt("Go");
  await wire.clock.advance(LONG_MS);
  await done;
  return events;
}

/** Adjacent deltas joined; without the live messages, which may be ahead of their events. */
function comparable(events: readonly AgentEvent[]): unknown[] {
  const received: Record<string, unknown>[] = [];
  for (const event of events) {
    if (event.type === "message_start") {
      received.push({ type: event.type, role: event.message.role });
    } else if (event.type === "message_update") {
      const { partial: _, ...news } = { partial: undefined, ...event.assistantMessageEvent };
      const last = received.at(-1);
      const { type, contentIndex, delta } = { contentIndex: -1, delta: "", ...news };
      const isSame = last?.["type"] === type && last["contentIndex"] === contentIndex;
      if (last && isSame && delta !== "") last["delta"] = `${String(last["delta"])}${delta}`;
      else received.push({ ...news });
    } else received.push({ ...event });
  }
  const untimed = (key: string, value: unknown): unknown =>
    key === "timestamp" || key === "durationMs" ? 0 : value;
  return JSON.parse(JSON.stringify(received, untimed));
}

const aPart: fc.Arbitrary<ScriptPart> = fc.oneof(
  fc.string({ maxLength: 12, unit: "binary" }).map((text) => say(text)),
  fc.string({ maxLength: 8 }).map((text) => think(text, { signature: "s" })),
  fc
    .tuple(fc.constantFrom("fast", "throws", "nosuch"), fc.jsonValue({ maxDepth: 2 }))
    .map(([name, value]) => call(name, { value })),
  fc.constantFrom("{", "", "null", "[1]").map((text) => call("fast", text)),
  fc.constant(serviceTool("search", { output: ["x"], raw: { a: 1 } })),
);

const aResponse: fc.Arbitrary<ScriptAnswer> = fc
  .record({
    parts: fc.array(aPart, { maxLength: 4 }),
    isCut: fc.boolean(),
    end: fc.oneof(
      // Usage comes with the end: a client that leaves before that does not know it.
      { weight: 4, arbitrary: fc.constant({ usage: { input: 10, output: 5 } }) },
      {
        weight: 1,
        arbitrary: fc.constantFrom<object>(
          fail("Busy", { kind: "overloaded", retryAfterMs: 5 }),
          fail("Bad", { kind: "bad_request" }),
          { stopReason: "length" },
          { refuse: "No." },
          { breaks: new Error("broken") },
          stall(),
          cutOff(),
        ),
      },
    ),
  })
  .map(({ parts, isCut, end }) => {
    const last = parts.at(-1);
    return { parts: isCut && last ? [...parts.slice(0, -1), unfinished(last)] : parts, ...end };
  });

describe("to the loop the remote client is the same as the in-process one", () => {
  it("event by event, whatever a run does", async () => {
    const aWorld = fc.record(
      {
        script: fc.array(aResponse, { maxLength: 4 }),
        abortAtMs: fc.integer({ min: 0, max: 60 }),
      },
      { requiredKeys: ["script"] },
    );
    await fc.assert(
      fc.asyncProperty(aWorld, async (world) => {
        expect(comparable(await run(world, true))).toEqual(comparable(await run(world, false)));
      }),
      { numRuns: 100 },
    );
  });

  it("and not where the connection breaks, again and again", async () => {
    const aWorld = fc.record({
      script: fc.array(aResponse, { maxLength: 3 }),
      cuts: fc.array(fc.integer({ min: 2, max: 15 }), { maxLength: 6 }),
    });
    await fc.assert(
      fc.asyncProperty(aWorld, async (world) => {
        expect(comparable(await run(world, true))).toEqual(comparable(await run(world, false)));
      }),
      { numRuns: 60 },
    );
  });
});

describe("a typed answer behind the wire", () => {
  it("is asked for as the service can, and again in the same form, over cut connections", async () => {
    const wire = new ModelWire({
      script: ['{"answer":["green",1]}', '{"answer":["green","black"]}'],
      scripted: { delayMs: 1, betweenMs: 1, chunkSize: 3 },
      cuts: [6, 9],
    });
    const agent = new Agent({
      protocol: wire.client,
      clock: wire.clock,
      model: wire.model.model,
      providerOptions: { openai: { previousResponseId: "auto" } },
    });
    const output = { type: "array", items: { enum: ["green", "black"] } } as const;
    const done = agent.prompt("Which teas?", { output });
    await wire.clock.advance(LONG_MS);
    expect((await done).output).toEqual(["green", "black"]);
    expect(wire.model.calls).toHaveLength(2);
    for (const { options, tools: sent } of wire.model.calls) {
      expect(options).toMatchObject({
        outputFormat: { tool: "final_answer", schema: { required: ["answer"] } },
        providerOptions: { openai: { previousResponseId: "auto" } },
      });
      expect(sent?.map(({ name }) => name)).toEqual(["final_answer"]);
    }
    const messages = wire.model.calls[1]?.messages;
    expect(JSON.stringify(messages?.at(-1))).toContain("/answer/1");
  });
});
