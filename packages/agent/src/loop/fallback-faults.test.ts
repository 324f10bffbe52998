import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createInProcessClient, type Model, textOf } from "@gyre/ai";
import { MissingKeyError } from "@gyre/ai/node";
import { createProviders } from "@gyre/ai/providers";
import { afterEach, describe, expect, it } from "vitest";
import { Agent } from "../agent/agent.ts";
import type { AgentOptions } from "../agent/options.ts";
import { type LogLine, logging } from "../observe/logging.ts";
import { render } from "../testing/render.ts";
import type { AgentEvent } from "../contract/types.ts";

// Two services on sockets: the first has a fault, the second answers.

const SERVERS: Server[] = [];
afterEach(async () => {
  for (const server of SERVERS.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

type Respond = (response: ServerResponse) => void;

async function serve(respond: Respond): Promise<{ url: string; asked: () => number }> {
  let asked = 0;
  const server = createServer((request, response) => {
    asked++;
    request.resume().on("end", () => respond(response));
  });
  SERVERS.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: () => asked };
}

function stream(response: ServerResponse, events: readonly object[], end = true): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  if (end) response.end();
}

const BEGIN = { type: "message_start", message: { id: "m1", usage: { input_tokens: 1_000_000 } } };
const ANSWER: readonly object[] = [
  BEGIN,
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Here " } },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "I am" } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
  { type: "message_stop" },
];
const REFUSAL: readonly object[] = [
  BEGIN,
  { type: "message_delta", delta: { stop_reason: "refusal" }, usage: { output_tokens: 1 } },
  { type: "message_stop" },
];

function fault(status: number, type: string, message: string, headers = {}): Respond {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ type: "error", error: { type, message } }));
  };
}

interface Outcome {
  text: string;
  stop: string;
  /** How often each was asked. */
  asked: [number, number];
  events: AgentEvent[];
  lines: LogLine[];
  cost: number | undefined;
}

interface Fault extends Partial<AgentOptions> {
  first?: Respond;
  /** In place of the first service's address. */
  baseUrl?: string;
  /** Whether there is no key for the first. */
  keyless?: boolean;
}

async function runWith({
  first = () => {},
  baseUrl,
  keyless,
  ...options
}: Fault): Promise<Outcome> {
  const [one, other] = [await serve(first), await serve((response) => stream(response, ANSWER))];
  const claude: Model = {
    id: "claude-test",
    name: "Test",
    api: "anthropic-messages",
    provider: "anthropic",
    baseUrl: baseUrl ?? one.url,
    price: { input: 7, output: 0 },
  };
  const substitute: Model = {
    ...claude,
    id: "other-test",
    provider: "other",
    baseUrl: other.url,
    price: { input: 3, output: 0 },
  };
  const lines: LogLine[] = [];
  const agent = new Agent({
    model: claude,
    fallbackModels: [substitute],
    protocol: createInProcessClient(createProviders()),
    getApiKey: (provider) => {
      if (keyless && provider === "anthropic") throw new MissingKeyError({ name: provider }, []);
      return "test-key";
    },
    retry: { maxRetries: 2, baseDelayMs: 1 },
    middleware: [logging((line) => lines.push(line))],
    ...options,
  });
  const events: AgentEvent[] = [];
  agent.subscribe((event) => void events.push(event));
  const { finalMessage, stop, usage } = await agent.prompt("Hello?");
  const text = finalMessage ? textOf(finalMessage) : "";
  const asked: Outcome["asked"] = [one.asked(), other.asked()];
  return { text, stop, asked, events, lines, cost: usage.cost?.total };
}

function only(events: readonly AgentEvent[], type: AgentEvent["type"]): AgentEvent[] {
  return events.filter((event) => event.type === type);
}

const OVERLOADED = fault(529, "overloaded_error", "Overloaded");

describe("a fault of the first model", () => {
  it.each<[string, { kind: string; asked: number } & Fault]>([
    ["529", { kind: "overloaded", asked: 1, first: OVERLOADED }],
    ["503", { kind: "overloaded", asked: 1, first: fault(503, "api_error", "Unavailable") }],
    ["no key", { kind: "auth", asked: 0, keyless: true }],
    ["500", { kind: "unknown", asked: 3, first: fault(500, "api_error", "Internal error") }],
    ["429", { kind: "rate_limit", asked: 3, first: fault(429, "rate_limit_error", "Slow down") }],
    [
      "429 with a long retry-after",
      {
        kind: "rate_limit",
        asked: 1,
        first: fault(429, "rate_limit_error", "Slow down", { "retry-after": "120" }),
      },
    ],
    [
      "a timeout",
      // Long enough for the second, which has the same limit, on a busy machine.
      {
        kind: "timeout",
        asked: 2,
        watchdog: { firstByteMs: 1_000 },
        retry: { maxRetries: 1, baseDelayMs: 1 },
      },
    ],
    ["a name that DNS does not know", { kind: "network", asked: 0, baseUrl: "http://no.invalid" }],
    ["401", { kind: "auth", asked: 1, first: fault(401, "authentication_error", "invalid key") }],
    ["403", { kind: "auth", asked: 1, first: fault(403, "permission_error", "Not for you") }],
    [
      "404",
      { kind: "bad_request", asked: 1, first: fault(404, "not_found_error", "model: claude-test") },
    ],
  ])("%s: the second answers", async (_, { kind, asked, ...more }) => {
    const { asked: times, cost, events, lines, stop, text } = await runWith(more);
    expect({ stop, text, times }).toEqual({ stop: "done", text: "Here I am", times: [asked, 1] });
    expect(only(events, "fallback")).toMatchObject([
      {
        from: { provider: "anthropic", id: "claude-test" },
        to: { provider: "other", id: "other-test" },
        kind,
      },
    ]);
    // A million tokens at the price of the second: failures cost nothing.
    expect(cost).toBe(3);
    expect(
      lines.flatMap((line) =>
        line.event === "model_call" ? [[line.model, line.usage?.cost?.total]] : [],
      ),
    ).toEqual([
      ...Array.from({ length: kind === "network" ? 3 : asked }, () => ["claude-test", undefined]),
      ["other-test", 3],
    ]);
  });

  it("the answer of the second is streamed, and nothing is shown twice", async () => {
    const { events } = await runWith({ first: OVERLOADED });
    expect(only(events, "message_start")).toHaveLength(2);
    expect(only(events, "message_update").map(render)).toEqual([
      "update text",
      'update +"Here "',
      'update +"I am"',
      "update end",
    ]);
  });

  it("one that comes after text was shown: what was shown stays, no other is asked", async () => {
    const { asked, events, stop } = await runWith({
      first: (response) => {
        stream(response, ANSWER.slice(0, 3), false);
        response.write(
          `event: error\ndata: ${JSON.stringify({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } })}\n\n`,
        );
        response.end();
      },
    });
    expect({ asked, stop }).toEqual({ asked: [1, 0], stop: "error" });
    expect(only(events, "fallback")).toEqual([]);
  });

  it("a refusal is an answer, unless fallbackOn lists it", async () => {
    const first: Respond = (response) => stream(response, REFUSAL);
    expect(await runWith({ first })).toMatchObject({ asked: [1, 0], stop: "error" });
    expect(await runWith({ first, fallbackOn: ["refused"] })).toMatchObject({
      asked: [1, 1],
      stop: "done",
      text: "Here I am",
    });
  });

  it("by default, a service that limits requests is tried three times, not ten", async () => {
    const first = fault(429, "rate_limit_error", "Slow down");
    const { asked } = await runWith({ first, retry: { baseDelayMs: 1 } });
    expect(asked).toEqual([3, 1]);
  });
});
