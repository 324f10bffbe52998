import { Agent, type AgentEvent, type AgentTool, approval } from "@gyre/agent";
import {
  Accumulator,
  type AssistantMessage,
  AssistantMessageEventStream,
  type StreamFn,
} from "@gyre/ai";
import {
  call,
  cutOff,
  fail,
  manualClock,
  say,
  type ScriptAnswer,
  scriptedModel,
  type ScriptPart,
  serviceTool,
  stall,
  think,
  unfinished,
} from "@gyre/ai/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toWireEvent, type WireEvent, WireEventWriter } from "./wire-event.ts";
import { WireEventReader } from "./wire-event-reader.ts";

const LONG_MS = 100_000;

const tools: AgentTool[] = [
  { name: "fast", description: "", parameters: { type: "object" }, execute: () => "done" },
  {
    name: "talks",
    description: "",
    parameters: { type: "object" },
    concurrent: true,
    execute: (_args, { update: onUpdate }) => {
      for (const text of ["a", "ab"]) onUpdate({ content: [{ type: "text", text }] });
      return { content: [{ type: "text", text: "abc" }], details: { n: 3 } };
    },
  },
  {
    name: "throws",
    description: "",
    parameters: { type: "object" },
    concurrent: true,
    execute: () => {
      throw new Error("boom");
    },
  },
  { name: "asks", description: "", parameters: { type: "object" }, execute: () => "asked" },
];

interface Recorded {
  /** Copies, made when the event came. */
  events: AgentEvent[];
  /** The same as they received. */
  written: WireEvent[];
  stateless: WireEvent[];
}

interface World {
  script: readonly ScriptAnswer[];
  abortAtMs?: number;
  steerAtMs?: number;
  steering?: "skip-remaining" | "redirect";
  streamFn?: StreamFn;
}

/** Lives through a script by the clock. */
async function record(world: World): Promise<Recorded> {
  const clock = manualClock();
  const model = scriptedModel((_context, _options, index) => world.script[index] ?? "Done", {
    clock,
    delayMs: 1,
    betweenMs: 1,
    chunkSize: 3,
    usage: { input: 10, output: 5 },
  });
  const agent = new Agent({
    protocol: model,
    clock,
    random: () => 0.5,
    retry: { maxRetries: 2, baseDelayMs: 10 },
    watchdog: { contentMs: 500 },
    limits: { maxTurns: 8 },
    steering: world.steering ?? "skip-remaining",
    model: model.model,
    tools,
    middleware: [approval(({ tool }) => (tool.name === "asks" ? "suspend" : "allow"))],
    ...(world.streamFn && { streamFn: world.streamFn }),
  });
  const recorded: Recorded = { events: [], written: [], stateless: [] };
  const writer = new WireEventWriter();
  agent.subscribe((event) => {
    recorded.events.push(structuredClone(event));
    recorded.stateless.push(structuredClone(toWireEvent(event)));
    recorded.written.push(structuredClone(writer.write(event)));
  });
  const { abortAtMs, steerAtMs } = world;
  if (abortAtMs !== undefined) clock.after(abortAtMs, () => agent.abort());
  if (steerAtMs !== undefined) clock.after(steerAtMs, () => agent.steer("Wait"));
  const settle = async (run: Promise<unknown>): Promise<void> => {
    let settled = false;
    const note = (): void => void (settled = true);
    run.then(note, note);
    await clock.advance(LONG_MS);
    expect(settled).toBe(true);
    await run;
  };
  await settle(agent.prompt("Go"));
  if (agent.state.pending.length > 0) {
    // Once undecided, once decided.
    await settle(agent.continue());
    const ids = agent.state.pending.map(({ toolCall }) => toolCall.id);
    const decisions = Object.fromEntries(ids.map((id) => [id, { type: "approve" } as const]));
    await settle(agent.continue({ decisions }));
  }
  return recorded;
}

/** What comes out at the other end, copied as it comes. */
function rebuild(wire: readonly WireEvent[], reader = new WireEventReader()): AgentEvent[] {
  return wire.flatMap((event) => {
    const received = JSON.parse(JSON.stringify(event)) as WireEvent;
    return reader.read(received).map((each) => structuredClone(each));
  });
}

/** Leaves out the message so far, which is live: the original's may be ahead of its events. */
function comparable(events: readonly AgentEvent[]): unknown[] {
  const plain = JSON.parse(JSON.stringify(events)) as AgentEvent[];
  return plain.map((event) => {
    if (event.type === "message_start" && event.message.role === "assistant") {
      return { ...event, message: { ...event.message, content: "left out" } };
    }
    if (event.type !== "message_update") return event;
    const { partial: _, ...update } = { partial: undefined, ...event.assistantMessageEvent };
    return { type: event.type, update };
  });
}

/** The message of each update is what the deltas up to there make of it. */
function checkPartials(events: readonly AgentEvent[]): void {
  let texts: string[] = [];
  for (const event of events) {
    if (event.type === "message_start") texts = [];
    if (event.type !== "message_update") continue;
    const { assistantMessageEvent: update, message } = event;
    if (!("delta" in update) || update.type === "toolcall_delta") continue;
    const text = (texts[update.contentIndex] ?? "") + update.delta;
    texts[update.contentIndex] = text;
    const block = message.content[update.contentIndex];
    expect(block).toMatchObject(block?.type === "text" ? { text } : { thinking: text });
  }
}

const aCall: fc.Arbitrary<ScriptPart> = fc
  .record({
    name: fc.constantFrom("fast", "talks", "throws", "asks", "nosuch"),
    args: fc.oneof(
      fc.constant<Record<string, unknown> | string>({}),
      fc.record({ text: fc.string({ unit: "binary" }), deep: fc.jsonValue({ maxDepth: 2 }) }),
      fc.constantFrom("", "{", '{"n": ', "[1]", "null", '{"n": 1} x'),
    ),
    id: fc.option(fc.constantFrom("same", ""), { nil: undefined, freq: 4 }),
  })
  .map(({ name, args, id }) => call(name, args, id));

const aPart: fc.Arbitrary<ScriptPart> = fc.oneof(
  fc
    .record({ text: fc.string({ maxLength: 12, unit: "binary" }), signature: fc.boolean() })
    .map(({ text, signature }) => say(text, signature ? { signature: "s1" } : {})),
  fc
    .record({ text: fc.string({ maxLength: 8 }), redacted: fc.boolean() })
    .map(({ text, redacted }) => think(text, redacted ? { redacted, signature: "s2" } : {})),
  aCall,
  fc.constant(serviceTool("search", { id: "st", input: { q: 1 }, output: ["x"], raw: { a: 1 } })),
);

const aResponse: fc.Arbitrary<ScriptAnswer> = fc
  .record({
    parts: fc.array(aPart, { maxLength: 4 }),
    isCut: fc.boolean(),
    end: fc.oneof(
      { weight: 4, arbitrary: fc.constant({}) },
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
    responseId: fc.constantFrom("r1", undefined),
  })
  .map(({ parts, isCut, end, responseId }) => {
    const last = parts.at(-1);
    const cut = isCut && last ? [...parts.slice(0, -1), unfinished(last)] : parts;
    return { parts: cut, ...end, ...(responseId !== undefined && { responseId }) };
  });

const aWorld = fc.record(
  {
    script: fc.array(aResponse, { maxLength: 4 }),
    abortAtMs: fc.integer({ min: 0, max: 60 }),
    steerAtMs: fc.integer({ min: 0, max: 30 }),
    steering: fc.constantFrom<"skip-remaining" | "redirect">("skip-remaining", "redirect"),
  },
  { requiredKeys: ["script"] },
);

describe("only deltas travel: the receiving end rebuilds the partial message", () => {
  it("gives the events back, whatever a run does", async () => {
    await fc.assert(
      fc.asyncProperty(aWorld, async (world) => {
        const { events, written, stateless } = await record(world);
        const rebuilt = rebuild(written);
        expect(comparable(rebuilt)).toEqual(comparable(events));
        checkPartials(rebuilt);
        expect(comparable(rebuild(stateless))).toEqual(comparable(events));
      }),
      { numRuns: 100 },
    );
  });

  it("gives them back to a reader that comes in the middle, too", async () => {
    await fc.assert(
      fc.asyncProperty(aWorld, fc.integer({ min: 0, max: 80 }), async (world, at) => {
        const { events, snapshot, rest } = await recordFrom(world, at);
        const reader = new WireEventReader(JSON.parse(JSON.stringify(snapshot)));
        // A message whose start was seen before comes as a whole.
        const got = comparable(rebuild(rest, reader));
        const wanted = comparable(events);
        const retold = got.length - wanted.length;
        expect([0, 1]).toContain(retold);
        expect(got.slice(retold)).toEqual(wanted);
      }),
      { numRuns: 60 },
    );
  });

  it("joins deltas that were joined on the way to the same message", async () => {
    const { events, written } = await record({
      script: [[say("Hello, you there"), call("fast", { text: "abc" })]],
    });
    const joined: WireEvent[] = [];
    for (const event of written) {
      const last = joined.at(-1);
      const [before, after] = [last?.payload["event"], event.payload["event"]] as [
        Record<string, string> | undefined,
        Record<string, string> | undefined,
      ];
      const isSame = before?.["delta"] !== undefined && before["type"] === after?.["type"];
      if (!last || !isSame) joined.push(event);
      else last.payload = { event: { ...after, delta: `${before["delta"]}${after?.["delta"]}` } };
    }
    const ends = (all: AgentEvent[]): AgentEvent[] =>
      all.filter(({ type }) => type !== "message_update" && type !== "message_start");
    expect(joined.length).toBeLessThan(written.length);
    expect(ends(rebuild(joined))).toEqual(ends(events));
  });

  it("sends each text once: a run's wire is about as long as what it said", async () => {
    const text = "word ".repeat(2000);
    const { written } = await record({ script: [[say(text)]] });
    const { written: none } = await record({ script: [[say("w")]] });
    const payloads = (wire: WireEvent[]): number =>
      JSON.stringify(wire.filter(({ type }) => type !== "message_update")).length;
    expect(payloads(written)).toBeLessThan(payloads(none) + 50);
  });

  it("names in toolcall_start the id and the name of the call", async () => {
    const { stateless } = await record({ script: [[call("fast", { n: 1 }, "c1")]] });
    const start = stateless.find((wire) => readUpdate(wire)["type"] === "toolcall_start");
    expect(start && readUpdate(start)).toEqual({
      type: "toolcall_start",
      contentIndex: 0,
      id: "c1",
      name: "fast",
    });
  });

  it("ends a block with its length, not its text", async () => {
    const { stateless } = await record({ script: [[say("Hello", { signature: "s" })]] });
    const end = stateless.find((wire) => readUpdate(wire)["type"] === "text_end");
    expect(end && readUpdate(end)).toEqual({
      type: "text_end",
      contentIndex: 0,
      length: 5,
      signature: "s",
    });
  });

  it("has whole messages in message_end where the reader keeps nothing", async () => {
    const { stateless } = await record({ script: [[say("Hello")]] });
    const ends = stateless.filter(({ type }) => type === "message_end");
    expect(ends.map(({ payload }) => payload["message"])).toMatchObject([
      { role: "user", content: "Go" },
      { role: "assistant", content: [{ type: "text", text: "Hello" }] },
    ]);
  });

  it("ends a run without its messages, with all else", async () => {
    const { stateless } = await record({ script: [[say("Hello")]] });
    expect(stateless.at(-1)).toEqual({
      type: "agent_end",
      payload: {
        stop: "done",
        turns: 1,
        usage: { input: 10, output: 5, totalTokens: 15 },
        undelivered: [],
        pending: [],
      },
    });
  });
});

describe("done carries all that is not a delta, checked by the receiver", () => {
  it("refuses a message of which a delta is missing", async () => {
    const { written } = await record({ script: [[say("Hello, you")]] });
    const at = written.findLastIndex((wire) => readUpdate(wire)["type"] === "text_delta");
    expect(() => rebuild(written.toSpliced(at, 1))).toThrow(
      /Block 0 has a length of 9; 10 was sent/,
    );
  });

  it("has the message right where a provider's end differs from what it streamed", async () => {
    const streamFn: StreamFn = (model, _context, { clock }) => {
      const stream = new AssistantMessageEventStream();
      const out = new Accumulator(stream, model, clock?.now() ?? 0);
      const index = out.textStart();
      out.text(index, "Draft");
      const message: AssistantMessage = {
        ...out.message,
        content: [
          { type: "thinking", thinking: "never streamed" },
          { type: "text", text: "Final" },
        ],
      };
      stream.push({ type: "done", reason: "stop", message });
      return stream;
    };
    const { events, written } = await record({ script: [], streamFn });
    const end = rebuild(written).at(-1);
    expect(end).toEqual(events.at(-1));
    expect(JSON.stringify(end)).toContain("never streamed");
  });

  it("builds a message that did not stream at all from its end", async () => {
    const streamFn: StreamFn = (model) => {
      const stream = new AssistantMessageEventStream();
      const { message } = new Accumulator(stream, model, 0);
      message.content.push({ type: "text", text: "At once" });
      stream.push({ type: "done", reason: "stop", message });
      return stream;
    };
    const { events, written } = await record({ script: [], streamFn });
    expect(rebuild(written).at(-1)).toEqual(events.at(-1));
  });
});

describe("a reader of what makes no sense", () => {
  it("throws a ProtocolError, and nothing else", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            type: fc.constantFrom(
              "agent_start",
              "turn_start",
              "message_start",
              "message_update",
              "message_end",
              "turn_end",
              "agent_end",
            ),
            payload: fc.oneof(
              fc.constant({ message: { role: "assistant", content: [], usage: {} } }),
              fc.record({ message: fc.jsonValue(), blocks: fc.jsonValue() }),
              fc.record({
                event: fc.record({
                  type: fc.constantFrom("text_start", "text_delta", "toolcall_end", "image", "x"),
                  contentIndex: fc.oneof(fc.integer({ min: -1, max: 2 }), fc.string()),
                  delta: fc.jsonValue(),
                  content: fc.jsonValue(),
                }),
              }),
            ),
          }),
          { maxLength: 8 },
        ),
        (wire) => {
          const reader = new WireEventReader();
          for (const event of wire) {
            try {
              reader.read(event);
            } catch (error) {
              expect((error as Error).name).toBe("ProtocolError");
            }
          }
        },
      ),
    );
  });
});

function readUpdate(wire: WireEvent): Record<string, unknown> {
  return (wire.payload["event"] ?? {}) as Record<string, unknown>;
}

/** As `record`, for a reader that begins after event `at` with a snapshot. */
async function recordFrom(
  world: World,
  at: number,
): Promise<{ events: AgentEvent[]; snapshot: object; rest: WireEvent[] }> {
  const { events, live } = await recordLive(world);
  const writer = new WireEventWriter();
  const first = Math.min(at, events.length - 1);
  const messages: unknown[] = [];
  const rest: WireEvent[] = [];
  let snapshot: object = {};
  live.forEach((event, index) => {
    if (index === first) {
      snapshot = structuredClone({ messages, state: writer.createReaderState(messages as never) });
    }
    const wire = structuredClone(writer.write(event));
    if (index >= first) rest.push(wire);
    if (event.type === "message_end") messages.push(event.message);
  });
  return { events: events.slice(first), snapshot, rest };
}

/** Events as they were, and as copies that share their messages as the originals do. */
async function recordLive(world: World): Promise<{ events: AgentEvent[]; live: AgentEvent[] }> {
  const { events } = await record(world);
  const reader = new WireEventReader();
  const writer = new WireEventWriter();
  const live: AgentEvent[] = [];
  for (const event of events) for (const each of reader.read(writer.write(event))) live.push(each);
  return { events, live };
}
