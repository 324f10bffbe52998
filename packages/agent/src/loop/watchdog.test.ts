import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createInProcessClient, type Model } from "@gyre/ai";
import { createProviders } from "@gyre/ai/providers";
import { type ManualClock, manualClock } from "@gyre/ai/testing";
import { afterEach, describe, expect, it } from "vitest";
import { type Playing, start } from "../testing/play.ts";
import type { AgentLoopConfig } from "../contract/types.ts";

// The loop, the formats and a service on a socket that keeps its connection alive for minutes,
// under a clock that stands still.

/** Turns of the event loop in which a byte gets from one end of a socket to the other. */
const MAX_TURNS = 2_000;
const SERVERS: Server[] = [];
afterEach(async () => {
  for (const server of SERVERS.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

interface Line {
  /** Writes to the connection of the newest request. Resolves when the client has read it. */
  send: (text: string) => Promise<void>;
  asked: () => number;
  clock: ManualClock;
  playing: Playing;
  /** What passes on the connection while the model is at work: `text` each `everyMs`. */
  keepAlive: (text: string, everyMs: number, forMs: number) => Promise<void>;
}

/** A request to a service whose address is of this machine only where `local` says so. */
async function call(
  api: "anthropic-messages" | "openai-responses" | "openai-completions",
  config: Partial<AgentLoopConfig> = {},
  { local = false } = {},
): Promise<Line> {
  let asked = 0;
  let line: ServerResponse | undefined;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      asked++;
      line = response.writeHead(200, { "content-type": "text/event-stream" });
      line.flushHeaders();
    });
  });
  SERVERS.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  let bytesRead = 0;
  const counting: typeof fetch = async (input, init) => {
    const asked = input instanceof Request ? input.url : input.toString();
    const at = asked.replace("http://service.test", `http://127.0.0.1:${port}`);
    const answer = await fetch(at, init);
    const counter = new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        bytesRead += bytes.length;
        controller.enqueue(bytes);
      },
    });
    return new Response(answer.body?.pipeThrough(counter), {
      status: answer.status,
      headers: answer.headers,
    });
  };
  const clock = manualClock();
  const baseUrl = local ? `http://127.0.0.1:${port}` : "http://service.test";
  const provider = api === "anthropic-messages" ? "anthropic" : "openai";
  const model: Model = { id: "test", name: "Test", api, provider, baseUrl };
  const providers = createProviders({ getApiKey: () => "test-key", fetch: counting });
  const playing = start({
    clock,
    config: { model, protocol: createInProcessClient(providers), random: () => 0, ...config },
  });

  let bytesSent = 0;
  const send = async (text: string): Promise<void> => {
    while (!line) await clock.turn();
    bytesSent += Buffer.byteLength(text);
    line.write(text);
    // A request that was cut off reads nothing more.
    for (let turn = 0; turn < MAX_TURNS && bytesRead < bytesSent; turn++) await clock.turn();
    // From the counter to the reader.
    for (let turn = 0; turn < 5; turn++) await clock.turn();
  };
  const keepAlive = async (text: string, everyMs: number, forMs: number): Promise<void> => {
    for (let passed = 0; passed < forMs; passed += everyMs) {
      await clock.advance(everyMs);
      await send(text);
    }
  };
  return { send, keepAlive, asked: () => asked, clock, playing };
}

function event(payload: { type: string; [field: string]: unknown }): string {
  return `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`;
}

const MINUTES = 60_000;
const BEGIN = event({ type: "message_start", message: { id: "m1", usage: { input_tokens: 1 } } });
const PING = event({ type: "ping" });
const CALL = event({
  type: "content_block_start",
  index: 0,
  content_block: { type: "tool_use", id: "call_1", name: "write", input: {} },
});
const END = [
  event({ type: "content_block_stop", index: 0 }),
  event({
    type: "message_delta",
    delta: { stop_reason: "end_turn" },
    usage: { output_tokens: 1 },
  }),
  event({ type: "message_stop" }),
].join("");

describe("a service that is at work", () => {
  it("R22: pings through minutes of withheld arguments keep a response alive", async () => {
    const { send, keepAlive, asked, playing } = await call("anthropic-messages");
    await send(BEGIN + CALL);
    await keepAlive(PING, 10_000, 6 * MINUTES);
    await send(
      event({
        type: "content_block_delta",
        index: 0,
        delta: { type: "input_json_delta", partial_json: '{"path":"a.txt"}' },
      }) + END.replace("end_turn", "tool_use"),
    );
    // The tool does not exist: its result is enough of an end here.
    playing.abort();
    const { end } = await playing.done;
    expect(asked()).toBeLessThanOrEqual(2);
    const [first] = end.messages.flatMap((message) =>
      message.role === "assistant" ? [message] : [],
    );
    expect(first?.content).toMatchObject([{ name: "write", arguments: { path: "a.txt" } }]);
    expect(playing.recorder.only("retry")).toEqual([]);
  });

  it.each([
    ["an SSE comment", "openai-completions", "", ": OPENROUTER PROCESSING\n\n"],
    [
      "a lifecycle event",
      "openai-responses",
      event({ type: "response.created", response: { id: "r1", status: "in_progress" } }),
      event({ type: "response.in_progress", response: { id: "r1", status: "in_progress" } }),
    ],
    [
      "an empty delta",
      "openai-completions",
      "",
      `data: ${JSON.stringify({ id: "c1", choices: [{ index: 0, delta: { content: "" } }] })}\n\n`,
    ],
  ] as const)("R22: %s is life for the connection", async (_, api, opening, alive) => {
    const { send, keepAlive, asked, playing } = await call(api);
    await send(opening + alive);
    await keepAlive(alive, 100_000, 12 * MINUTES);
    expect(playing.recorder.only("retry", "agent_end")).toEqual([]);
    expect(asked()).toBe(1);
    playing.abort();
    await playing.done;
  });

  it("R22: without content for 15 minutes it is reported, and not asked again", async () => {
    const { send, keepAlive, asked, clock, playing } = await call("anthropic-messages");
    await send(BEGIN);
    await keepAlive(PING, MINUTES, 14 * MINUTES);
    await clock.advance(MINUTES - 1);
    expect(playing.recorder.only("agent_end")).toEqual([]);
    await clock.advance(1);
    const { end } = await playing.done;
    expect(asked()).toBe(1);
    expect(end.finalMessage).toMatchObject({
      errorMessage:
        "The service sent no content for 900 s (watchdog.contentMs). It may still be at work, so it is not asked again by itself.",
      failure: { kind: "stalled", retryable: false },
    });
  });

  it.each([
    ["thinking", { type: "thinking", thinking: "" }, "thinking", 2_000],
    ["text", { type: "text", text: "" }, "text", 3_000],
    ["call", { type: "tool_use", id: "c", name: "write", input: {} }, "call", 4_000],
  ])("R22: silence of %s has a limit of its own", async (_, content_block, phase, limitMs) => {
    const contentMs = { response: 1_000, thinking: 2_000, text: 3_000, call: 4_000 };
    const { send, clock, playing } = await call("anthropic-messages", { watchdog: { contentMs } });
    await send(BEGIN + event({ type: "content_block_start", index: 0, content_block }));
    await clock.advance(limitMs - 1);
    expect(playing.recorder.only("agent_end")).toEqual([]);
    await clock.advance(1);
    const { end } = await playing.done;
    expect(end.finalMessage?.errorMessage).toContain(`(watchdog.contentMs.${phase})`);
  });

  it("R22: while it waits, events say for how long and for what", async () => {
    const { send, keepAlive, playing } = await call("anthropic-messages");
    await send(BEGIN);
    await keepAlive(PING, 10_000, 30_000);
    await send(CALL);
    await keepAlive(PING, 10_000, 2 * MINUTES);
    expect(playing.recorder.only("waiting")).toEqual([
      "waiting for response 15000 ms",
      "waiting for response 30000 ms",
      "waiting for call write 15000 ms",
      "waiting for call write 30000 ms",
      "waiting for call write 60000 ms",
      "waiting for call write 120000 ms",
    ]);
    playing.abort();
    await playing.done;
  });
});

describe("a connection without a byte", () => {
  it("R22: is cut off 300 s after the request, and asked again", async () => {
    const { asked, clock, playing } = await call("anthropic-messages");
    while (asked() === 0) await clock.turn();
    await clock.advance(5 * MINUTES - 1);
    expect(playing.recorder.only("retry")).toEqual([]);
    await clock.advance(1);
    expect(playing.recorder.only("retry")).toEqual([
      'retry 1 after 0 ms: timeout "Anthropic did not answer for 300 s. Try again, or look at its status page."',
    ]);
    playing.abort();
    await playing.done;
  });

  it("R22: of this machine may take any time to begin", async () => {
    const { asked, clock, playing } = await call("anthropic-messages", {}, { local: true });
    while (asked() === 0) await clock.turn();
    await clock.advance(1e8);
    expect(playing.recorder.only("retry", "agent_end")).toEqual([]);
    playing.abort();
    await playing.done;
  });

  it("R22: is cut off after 120 s once it had begun", async () => {
    const { send, clock, playing } = await call("anthropic-messages");
    await send(BEGIN);
    await clock.advance(2 * MINUTES - 1);
    expect(playing.recorder.only("retry")).toEqual([]);
    await clock.advance(1);
    expect(playing.recorder.only("retry")).toEqual([
      'retry 1 after 0 ms: stalled "Anthropic went silent for 120 s. Try again, or look at its status page."',
    ]);
    playing.abort();
    await playing.done;
  });

  it("R22: has limits that the agent's options set", async () => {
    const watchdog = { firstByteMs: 1_000, betweenBytesMs: 2_000 };
    const silent = await call("anthropic-messages", { watchdog, retry: { maxRetries: 0 } });
    while (silent.asked() === 0) await silent.clock.turn();
    await silent.clock.advance(1_000);
    expect((await silent.playing.done).end.finalMessage?.failure?.kind).toBe("timeout");
    const stalled = await call("anthropic-messages", { watchdog, retry: { maxRetries: 0 } });
    await stalled.send(BEGIN);
    await stalled.clock.advance(1_999);
    expect(stalled.playing.recorder.only("agent_end")).toEqual([]);
    await stalled.clock.advance(1);
    expect((await stalled.playing.done).end.finalMessage?.failure?.kind).toBe("stalled");
  });
});
