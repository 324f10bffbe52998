import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import type { StreamOptions } from "../client/client.ts";
import type { AssistantMessageEventStream } from "../stream/assistant-stream.ts";
import { systemClock } from "../common/clock.ts";
import type { AssistantMessage, Model } from "../messages/messages.ts";
import type { ApiProvider } from "../client/registry.ts";
import { httpFetch } from "../node/http/http-fetch.ts";
import { sse, createPrompt } from "../testing/fake-service.ts";
import { type ManualClock, manualClock } from "../testing/manual-clock.ts";
import { anthropicMessages } from "./anthropic-messages/index.ts";
import { openaiCompletions } from "./openai-completions/index.ts";
import {
  AFTER_FINISH_MS,
  DEFAULT_BETWEEN_BYTES_MS,
  DRAIN_MS,
  type ProviderConfig,
} from "./http/exchange.ts";

const KEY = "test-key-0123456789";
const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);

// What a format reads from its service: "Hello", and its end.

interface TestedFormat {
  make: (config: ProviderConfig) => ApiProvider;
  model: Omit<Model, "baseUrl">;
  hello: string;
  end: string;
}

const GLOBAL_FETCH: Readonly<Record<string, TestedFormat>> = {
  anthropic: {
    make: anthropicMessages,
    model: { id: "claude-test", name: "Test", api: "anthropic-messages", provider: "anthropic" },
    hello: sse(
      { type: "message_start", message: { id: "m1", usage: { input_tokens: 1 } } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
    ),
    end: sse(
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
      { type: "message_stop" },
    ),
  },
  chat: {
    make: openaiCompletions,
    model: { id: "chat-test", name: "Test", api: "openai-completions", provider: "groq" },
    hello: sse({
      id: "c1",
      choices: [{ index: 0, delta: { role: "assistant", content: "Hello" } }],
    }),
    end: sse({ id: "c1", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, "[DONE]"),
  },
};
/** The same, on Node's own client. */
const HTTP_FETCH = Object.entries(GLOBAL_FETCH).map(([name, format]): [string, TestedFormat] => [
  `${name} by httpFetch`,
  { ...format, make: (config) => format.make({ ...config, fetch: httpFetch }) },
]);
const FORMATS: Readonly<Record<string, TestedFormat>> = {
  ...GLOBAL_FETCH,
  ...Object.fromEntries(HTTP_FETCH),
};
const NAMES = Object.keys(FORMATS);

function findFormat(name: string): TestedFormat {
  const format = FORMATS[name];
  if (!format) throw new Error(`There is no format "${name}".`);
  return format;
}

// A server that misbehaves to order.

const OPENED: { server: Server; sockets: Set<Socket> }[] = [];
afterEach(async () => {
  for (const { server, sockets } of OPENED.splice(0)) {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
});

interface FaultServer {
  url: string;
  /** Whole requests, in the order they came. */
  requests: string[];
  connections: () => number;
  /** Resolves when every connection that carried a request has closed, as the server sees it. */
  closed: () => Promise<void>;
}

/** Each whole request is handed to `behave` with the socket that it came on. */
async function serve(
  behave: (socket: Socket, requests: readonly string[]) => void,
): Promise<FaultServer> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  // Without those that `fetch` opens for a next request that never comes.
  const used = new Set<Socket>();
  const waiting: (() => void)[] = [];
  const server = createServer((socket) => {
    connections++;
    sockets.add(socket.setNoDelay());
    let text = "";
    // What a connection that is cut says about it is not what is looked at here.
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      used.delete(socket);
      if (used.size === 0) for (const resolve of waiting.splice(0)) resolve();
    });
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      const [head = "", body] = text.split("\r\n\r\n", 2);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (body === undefined || body.length < length) return;
      requests.push(text);
      used.add(socket);
      text = "";
      behave(socket, requests);
    });
  });
  OPENED.push({ server, sockets });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const closed = async (): Promise<void> => {
    if (used.size > 0) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  return { url, requests, connections: () => connections, closed };
}

function head(headers: Record<string, string | number> = {}, status = 200): string {
  const all = { "content-type": "text/event-stream", ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Said\r\n${lines.join("")}\r\n`;
}

const CHUNKED = head({ "transfer-encoding": "chunked" });
const LAST_CHUNK = "0\r\n\r\n";

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

/** A whole response with a body of known length. */
function whole(body: string, status = 200, headers: Record<string, string> = {}): string {
  return head({ "content-length": Buffer.byteLength(body), ...headers }, status) + body;
}

interface Asked {
  stream: AssistantMessageEventStream;
  clock: ManualClock;
  /** Resolves when the head of a response has come. */
  answered: Promise<void>;
  /** Resolves when the text of a response has begun to come. */
  begun: Promise<void>;
}

async function start(
  format: TestedFormat,
  url: string,
  options: StreamOptions = {},
): Promise<Asked> {
  const clock = manualClock(NOW);
  let onResponse = (): void => {};
  const answered = new Promise<void>((resolve) => (onResponse = resolve));
  const { stream: ask } = format.make({});
  const stream = await ask(
    { ...format.model, baseUrl: url },
    { messages: [createPrompt("Hello")] },
    { apiKey: KEY, clock, onResponse, ...options },
  );
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  void (async () => {
    for await (const { type } of stream) if (type === "text_delta") begin();
  })();
  return { stream, clock, answered, begun };
}

async function ask(
  format: TestedFormat,
  url: string,
  options: StreamOptions = {},
): Promise<AssistantMessage> {
  return (await start(format, url, options)).stream.result();
}

/** Asks a server that answers each request with `bytes` and then does `after`. */
async function askFormat(
  format: TestedFormat,
  bytes: string | Uint8Array,
  after: (socket: Socket) => void = () => {},
): Promise<AssistantMessage> {
  const { url } = await serve((socket) => void socket.write(bytes, () => after(socket)));
  return ask(format, url);
}

const HELLO = [{ type: "text", text: "Hello" }];

describe.each(NAMES)("%s over a socket", (name) => {
  const format = findFormat(name);
  const { end, hello } = format;

  it("reads a whole answer", async () => {
    const message = await askFormat(format, CHUNKED + chunk(hello + end) + LAST_CHUNK);
    expect(message).toMatchObject({ content: HELLO, stopReason: "stop" });
  });

  it("reads an answer that drips byte by byte", async () => {
    const { url } = await serve((socket) => {
      const bytes = Buffer.from(hello + end);
      const drip = (at: number): void => {
        if (at === bytes.length) return void socket.end(LAST_CHUNK);
        socket.write(chunk(bytes.toString("latin1", at, at + 1)), () => setImmediate(drip, at + 1));
      };
      socket.write(CHUNKED, () => drip(0));
    });
    expect(await ask(format, url)).toMatchObject({ content: HELLO, stopReason: "stop" });
  });

  it("reads an answer in gzip", async () => {
    const body = gzipSync(hello + end);
    const headText = head({ "content-encoding": "gzip", "content-length": body.length });
    const message = await askFormat(format, Buffer.concat([Buffer.from(headText), body]));
    expect(message).toMatchObject({ content: HELLO, stopReason: "stop" });
  });

  it("does not wait for a connection that stays open after the end", async () => {
    const { url, closed } = await serve((socket) => {
      socket.write(CHUNKED + chunk(hello + end));
    });
    const { clock, stream } = await start(format, url);
    expect(await stream.result()).toMatchObject({ content: HELLO, stopReason: "stop" });
    await clock.advance(DRAIN_MS);
    await closed();
  });

  it("uses a connection again whose end comes a moment after the last event", async () => {
    const { connections, url } = await serve((socket) => {
      socket.write(CHUNKED + chunk(hello + end), () =>
        setImmediate(() => socket.write(LAST_CHUNK)),
      );
    });
    for (let request = 0; request < 5; request++) {
      expect(await ask(format, url)).toMatchObject({ stopReason: "stop" });
      await systemClock.turn();
      await systemClock.turn();
    }
    expect(connections()).toBeLessThan(5);
  });

  it("waits for an answer no longer than its deadline", async () => {
    const { url, closed, requests } = await serve(() => {});
    // A server on this machine has no limit of its own.
    const asked = await start(format, url, { watchdog: { firstByteMs: 1_000 } });
    while (requests.length === 0) await asked.clock.turn();
    await asked.clock.advance(999);
    expect(asked.stream.closed).toBe(false);
    await asked.clock.advance(1);
    expect(await asked.stream.result()).toMatchObject({ failure: { kind: "timeout" } });
    await closed();
  });

  it("ends a stall after the head as a timeout, one in an event as a stall", async () => {
    const { url, closed } = await serve((socket, { length }) => {
      if (length === 1) socket.write(CHUNKED);
      else socket.write(CHUNKED + chunk(hello + end.slice(0, 20)));
    });
    const silent = await start(format, url, { watchdog: { firstByteMs: 1_000 } });
    await silent.answered;
    await silent.clock.advance(1_000);
    expect(await silent.stream.result()).toMatchObject({ failure: { kind: "timeout" } });
    await closed();
    const stalled = await start(format, url);
    await stalled.begun;
    await stalled.clock.advance(DEFAULT_BETWEEN_BYTES_MS);
    expect(await stalled.stream.result()).toMatchObject({
      content: HELLO,
      failure: { kind: "stalled" },
    });
  });

  const begun = CHUNKED + chunk(hello);
  const cutGzip = gzipSync(hello + end).subarray(0, -20);
  const gzipHead = head({ "content-encoding": "gzip", "transfer-encoding": "chunked" });
  const noGzip = gzipHead + chunk("This was never packed.") + LAST_CHUNK;
  it.each<[string, string, string | Uint8Array, (socket: Socket) => void]>([
    ["a reset before the head", "network", "", (socket) => socket.resetAndDestroy()],
    ["a close before the head", "network", "", (socket) => socket.end()],
    ["a head that is cut", "network", CHUNKED.slice(0, 30), (socket) => socket.end()],
    ["what is no HTTP", "network", "SSH-2.0-Other\r\n\r\n", (socket) => socket.end()],
    ["a close in the body", "incomplete", begun, (socket) => socket.end()],
    ["an end that comes too early", "incomplete", begun + LAST_CHUNK, () => {}],
    ["chunks that are none", "incomplete", `${begun}zz\r\n`, () => {}],
    [
      "a body shorter than was headText",
      "incomplete",
      head({ "content-length": 100_000 }) + hello,
      (socket) => socket.end(),
    ],
    [
      "gzip that is cut",
      "incomplete",
      Buffer.concat([
        Buffer.from(head({ "content-encoding": "gzip", "content-length": cutGzip.length })),
        cutGzip,
      ]),
      () => {},
    ],
    ["what is no gzip", "network", noGzip, () => {}],
  ])("ends %s as %s", async (_, kind, bytes, after) => {
    const whenSeen = (socket: Socket): void => void setImmediate(after, socket);
    const message = await askFormat(format, bytes, whenSeen);
    expect(message).toMatchObject({ stopReason: "error", failure: { kind } });
    expect(message.errorMessage).toMatch(/^[A-Z].+\.$/);
    expect("Hello".startsWith(joinText(message))).toBe(true);
  });

  it("keeps what came before a break", async () => {
    const { url } = await serve((socket) => {
      socket.write(begun);
      cut = () => socket.resetAndDestroy();
    });
    let cut = (): void => {};
    const asked = await start(format, url);
    await asked.begun;
    cut();
    expect(await asked.stream.result()).toMatchObject({
      content: HELLO,
      failure: { kind: "incomplete" },
    });
  });

  it.each([
    [401, '{"error":{"message":"No such key"}}', "auth", false],
    [403, '{"error":{"message":"Not for you"}}', "auth", false],
    [404, '{"error":{"message":"No such model"}}', "bad_request", false],
    [500, '{"error":{"message":"It broke"}}', "unknown", true],
    [502, "<html><title>Bad gateway</title></html>", "unknown", true],
    [503, "", "overloaded", true],
    [529, '{"error":{"type":"overloaded_error","message":"Busy"}}', "overloaded", true],
  ])("reports what a status %i means", async (status, body, kind, retryable) => {
    const message = await askFormat(format, whole(body, status));
    expect(message.failure).toMatchObject({ kind, retryable, status });
  });

  it("reports an error also where its body breaks off or never ends", async () => {
    const headText = head({ "content-length": 500, "retry-after": "3" }, 429);
    const failure = { kind: "rate_limit", status: 429, retryAfterMs: 3_000 };
    const cut = await askFormat(format, `${headText}{"err`, (socket) => socket.end());
    expect(cut.failure).toMatchObject(failure);
    const { url } = await serve((socket) => void socket.write(`${headText}{"err`));
    const open = await start(format, url);
    await open.answered;
    await open.clock.advance(AFTER_FINISH_MS);
    expect((await open.stream.result()).failure).toMatchObject(failure);
  });

  it.each<[string, Record<string, string>, number | undefined]>([
    ["seconds", { "retry-after": "7" }, 7_000],
    ["a fraction", { "retry-after": "1.5" }, 1_500],
    ["a date", { "retry-after": new Date(NOW + 30_000).toUTCString() }, 30_000],
    ["a date that is past", { "retry-after": new Date(NOW - 30_000).toUTCString() }, 0],
    ["milliseconds", { "retry-after-ms": "250" }, 250],
    ["both", { "retry-after": "1", "retry-after-ms": "1500" }, 1_500],
    ["nothing to wait", { "retry-after": "0" }, 0],
    ["hours", { "retry-after": "7200" }, 7_200_000],
    ["less than nothing", { "retry-after": "-5" }, 0],
    ["rubbish", { "retry-after": "soon" }, undefined],
    ["nothing", {}, undefined],
  ])("reports how long to wait after a 429 with %s", async (_, headers, retryAfterMs) => {
    const message = await askFormat(format, whole('{"error":{"message":"Slow"}}', 429, headers));
    expect(message.failure).toMatchObject({ kind: "rate_limit", retryable: true, status: 429 });
    expect(message.failure?.retryAfterMs).toBe(retryAfterMs);
  });

  it("asks again on a new connection when the server closed the old one", async () => {
    const server = await serve((socket) => {
      socket.end(CHUNKED + chunk(hello + end) + LAST_CHUNK);
    });
    for (let round = 1; round <= 3; round++) {
      expect(await ask(format, server.url)).toMatchObject({ stopReason: "stop" });
      expect(server.requests).toHaveLength(round);
      await server.closed();
    }
  });

  it("follows a redirect within the server, with body and key", async () => {
    const { url, requests } = await serve((socket, { length }) => {
      if (length > 1) socket.write(whole(hello + end));
      else socket.write(whole("", 308, { location: "/elsewhere?a=1" }));
    });
    expect(await ask(format, url)).toMatchObject({ content: HELLO, stopReason: "stop" });
    const [first = "", second = ""] = requests;
    expect(second).toMatch(/^POST \/elsewhere\?a=1 HTTP/);
    expect(second).toContain(KEY);
    expect(second.split("\r\n\r\n")[1]).toBe(first.split("\r\n\r\n")[1]);
  });

  it("takes neither key nor body to another server", async () => {
    const other = await serve((socket) => void socket.write(whole(hello + end)));
    const location = `${other.url}/v1`;
    const message = await askFormat(format, whole("", 307, { location }));
    expect(message.errorMessage).toContain(`redirects to ${new URL(location).host}`);
    expect(message.failure).toMatchObject({ kind: "bad_request", retryable: false });
    expect(other.connections()).toBe(0);
  });

  describe("an abort", () => {
    type State = [string, (socket: Socket) => void, (asked: Asked, seen: Promise<void>) => unknown];
    const states: State[] = [
      ["before the head", () => {}, (_, seen) => seen],
      ["after the head", (socket) => socket.write(CHUNKED), ({ answered }) => answered],
      [
        "in an event",
        (socket) => socket.write(begun + chunk(end.slice(0, 20))),
        (asked) => asked.begun,
      ],
      [
        "in the body of an error",
        (socket) => socket.write(`${head({ "content-length": 500 }, 500)}{"err`),
        ({ answered }) => answered,
      ],
    ];
    it.each(states)("%s ends at once, and closes the connection", async (_, behave, ready) => {
      let see = (): void => {};
      const seen = new Promise<void>((resolve) => (see = resolve));
      const { url, closed } = await serve((socket) => {
        behave(socket);
        see();
      });
      const control = new AbortController();
      const asked = await start(format, url, { signal: control.signal });
      await ready(asked, seen);
      control.abort();
      // The service neither goes on nor hangs up.
      const message = await asked.stream.result();
      expect(message.stopReason).toBe("aborted");
      await closed();
    });
  });
});

describe("the chat format after a reason to stop", () => {
  const { hello } = findFormat("chat");
  const stop = sse({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });

  it("waits a little for figures, and not for ever", async () => {
    const { url, closed } = await serve((socket) => {
      socket.write(CHUNKED + chunk(hello + stop));
    });
    const { begun, clock, stream } = await start(findFormat("chat"), url);
    await begun;
    await clock.advance(AFTER_FINISH_MS - 1);
    expect(stream.closed).toBe(false);
    await clock.advance(1);
    expect(await stream.result()).toMatchObject({ content: HELLO, stopReason: "stop" });
    await closed();
  });

  it("is content with a connection that breaks", async () => {
    let cut = (): void => {};
    const { url } = await serve((socket) => {
      socket.write(CHUNKED + chunk(hello + stop));
      cut = () => socket.resetAndDestroy();
    });
    const { begun, clock, stream } = await start(findFormat("chat"), url);
    await begun;
    await clock.turn();
    cut();
    expect(await stream.result()).toMatchObject({ content: HELLO, stopReason: "stop" });
  });
});

describe("a service that cannot be reached", () => {
  const format = findFormat("anthropic");

  it("because nothing listens", async () => {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const message = await ask(format, `http://127.0.0.1:${port}`);
    expect(message.failure).toMatchObject({ kind: "network", retryable: false });
    expect(message.errorMessage).toContain(`Nothing answers at 127.0.0.1:${port}`);
  });

  it("because its name is not known", async () => {
    const message = await ask(format, "http://nowhere.invalid");
    expect(message.failure).toMatchObject({ kind: "network", retryable: true });
    expect(message.errorMessage).toContain("The name nowhere.invalid was not found");
  });

  it("because it does not speak TLS", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {}).once("data", () => socket.end(head({}, 400)));
    });
    OPENED.push({ server, sockets: new Set() });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const message = await ask(format, `https://127.0.0.1:${port}`);
    expect(message.failure).toMatchObject({ kind: "network" });
    expect(message.errorMessage).toContain("The connection to 127.0.0.1");
  });

  it.each(["localhost:1", "not an address", "ftp://a.example", "//a.example"])(
    "because %j is no address",
    async (address) => {
      const message = await ask(format, address);
      expect(message.failure).toMatchObject({ kind: "bad_request", retryable: false });
      expect(message.errorMessage).toContain("The address of Anthropic cannot be used");
    },
  );

  it("because a key has a line break in it", async () => {
    const { connections, url } = await serve(() => {});
    const message = await ask(format, url, { apiKey: `${KEY}\n${KEY}` });
    expect(message.failure).toMatchObject({ kind: "bad_request", retryable: false });
    expect(message.errorMessage).not.toContain(KEY);
    expect(connections()).toBe(0);
  });
});

function joinText(message: AssistantMessage): string {
  return message.content.map((block) => (block.type === "text" ? block.text : "?")).join("");
}
