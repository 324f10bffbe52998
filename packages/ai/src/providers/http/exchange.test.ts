import { getEventListeners } from "node:events";
import { describe, expect, it, vi } from "vitest";
import type { StreamOptions } from "../../client/client.ts";
import type { AssistantMessageEvent } from "../../stream/events.ts";
import type { AssistantMessage, Context, Model } from "../../messages/messages.ts";
import { ApiRegistry, createInProcessClient } from "../../client/registry.ts";
import {
  type FakeAnswer,
  fakeService,
  type FakeService,
  sse,
  createPrompt,
} from "../../testing/fake-service.ts";
import { type ManualClock, manualClock } from "../../testing/manual-clock.ts";
import { ServiceFault } from "../errors/provider-error.ts";
import {
  AFTER_FINISH_MS,
  createProvider,
  DEFAULT_BETWEEN_BYTES_MS,
  DEFAULT_FIRST_BYTE_MS,
  DRAIN_MS,
  type ProviderConfig,
} from "./exchange.ts";
import type { ApiFormat } from "./format.ts";
import { authHeaders } from "./headers.ts";
import { parseObject } from "./json.ts";

/** A format with nothing but its request and its reader. */
const parrot: ApiFormat = {
  api: "parrot",
  writeRequest: (request) => ({
    url: `${request.baseUrl}/say`,
    headers: { "x-format": "parrot", ...authHeaders(request, "bearer") },
    body: { model: request.model.id, ...request.context },
  }),
  createReader(out) {
    let text = -1;
    return {
      finished: false,
      read(data) {
        const { end, error, last, say } = parseObject(data);
        if (error) throw new ServiceFault({ error });
        if (text < 0) text = out.textStart();
        if (typeof say === "string") out.text(text, say);
        if (typeof last === "boolean") this.finished = last;
        if (end === true) out.done("stop");
      },
      end() {
        if (this.finished) out.done("stop");
      },
    } satisfies ReturnType<ApiFormat["createReader"]> & { finished: boolean };
  },
};

const model: Model = {
  id: "polly-1",
  name: "Polly",
  api: "parrot",
  provider: "aviary",
  baseUrl: "https://aviary.example/v1",
};
/** At a service that wants a key and has an address of its own. */
const keyed: Model = { id: "polly-2", name: "Polly", api: "parrot", provider: "openai" };
const KEY = "feather-0123456789-plume";

const HELLO = sse({ say: "Hel" }, { say: "lo" });
const WHOLE = HELLO + sse({ end: true });

interface Setting {
  model?: Model;
  config?: ProviderConfig;
  options?: StreamOptions;
  context?: Partial<Context>;
  format?: ApiFormat;
  /** The options bring no key. */
  noKey?: boolean;
}

interface Asked {
  /** Whether the response has ended, as of now. */
  closed: () => boolean;
  events: AssistantMessageEvent[];
  result: Promise<AssistantMessage>;
  clock: ManualClock;
}

/** Asks through a registry and a client, as an application does. */
async function start(fetch: typeof globalThis.fetch, setting: Setting = {}): Promise<Asked> {
  const clock = manualClock();
  const registry = new ApiRegistry();
  registry.register(createProvider(setting.format ?? parrot, { fetch, ...setting.config }));
  const context = { messages: [createPrompt("Hello")], ...setting.context };
  const options = { clock, ...(!setting.noKey && { apiKey: KEY }), ...setting.options };
  const client = createInProcessClient(registry);
  const stream = await client.stream(setting.model ?? model, context, options);
  const events: AssistantMessageEvent[] = [];
  void (async () => {
    for await (const event of stream) events.push(event);
  })();
  return { closed: () => stream.closed, events, result: stream.result(), clock };
}

async function ask(
  service: FakeService | FakeAnswer | string,
  setting: Setting = {},
): Promise<AssistantMessage & { sent: FakeService["requests"] }> {
  const fake = typeof service === "object" && "fetch" in service ? service : fakeService(service);
  const { clock, result } = await start(fake.fetch, setting);
  const message = await result;
  await clock.turn();
  expect(clock.pending).toBe(0);
  return { ...message, sent: fake.requests };
}

function joinText(message: AssistantMessage): string {
  return message.content.map((block) => (block.type === "text" ? block.text : "?")).join("");
}

/** A fetch whose response the test sends by hand, and that may be deaf to its signal. */
interface ByHand {
  fetch: typeof fetch;
  answer: (response: Response) => void;
  asked: () => number;
}

function byHand({ deaf = false } = {}): ByHand {
  const waiting: ((response: Response) => void)[] = [];
  let asked = 0;
  const fetch = (_: unknown, init: RequestInit = {}): Promise<Response> => {
    asked++;
    return new Promise((resolve, reject) => {
      waiting.push(resolve);
      const { signal } = init;
      if (!deaf) signal?.addEventListener("abort", () => reject(signal.reason as Error));
    });
  };
  return {
    fetch,
    answer: (response) => waiting.shift()?.(response),
    asked: () => asked,
  };
}

/** A body that stays open, sent piece by piece. */
interface OpenBody {
  response: Response;
  send: (piece: string | Uint8Array) => void;
  breakOff: (error: Error) => void;
  canceled: () => boolean;
}

function openBody(headers: Record<string, string> = {}, status = 200): OpenBody {
  const encoder = new TextEncoder();
  let control: ReadableStreamDefaultController<Uint8Array> | undefined;
  let canceled = false;
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => void (control = controller),
    cancel: () => void (canceled = true),
  });
  return {
    response: new Response(stream, {
      status,
      headers: { "content-type": "text/event-stream", ...headers },
    }),
    send: (piece) => control?.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece),
    breakOff: (error) => control?.error(error),
    canceled: () => canceled,
  };
}

function answering(...responses: Response[]): typeof fetch {
  return () => Promise.resolve(responses.shift() ?? Response.error());
}

describe("a custom format", () => {
  it("is asked like every other", async () => {
    const message = await ask(WHOLE);
    expect(joinText(message)).toBe("Hello");
    expect(message).toMatchObject({
      api: "parrot",
      provider: "aviary",
      model: "polly-1",
      stopReason: "stop",
      report: { events: 3 },
    });
    expect(message.sent).toMatchObject([
      {
        url: "https://aviary.example/v1/say",
        headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
        body: { model: "polly-1", messages: [{ role: "user", content: "Hello" }] },
      },
    ]);
  });

  it("gives the same events however the bytes are cut", async () => {
    const whole = await start(fakeService(WHOLE).fetch);
    await whole.result;
    const single = await start(fakeService({ body: [...WHOLE] }).fetch);
    await single.result;
    await single.clock.turn();
    expect(single.events.map(({ type }) => type)).toEqual(whole.events.map(({ type }) => type));
  });
});

describe("the key", () => {
  it("comes from the options before anything else", async () => {
    const getApiKey = (): string => expect.unreachable();
    const { sent } = await ask(WHOLE, { config: { getApiKey } });
    expect(sent[0]?.headers["authorization"]).toBe(`Bearer ${KEY}`);
  });

  it("is asked for again with each request that brings none", async () => {
    const asked: string[] = [];
    const config: ProviderConfig = {
      getApiKey: ({ id }) => {
        asked.push(id);
        return Promise.resolve(`${KEY}-${asked.length}`);
      },
    };
    const service = fakeService(WHOLE);
    await ask(service, { config, noKey: true });
    await ask(service, { config, options: { apiKey: "" } });
    expect(asked).toEqual(["aviary", "aviary"]);
    expect(service.requests.map(({ headers }) => headers["authorization"])).toEqual([
      `Bearer ${KEY}-1`,
      `Bearer ${KEY}-2`,
    ]);
  });

  it.each([{}, { apiKey: "" }])("that is missing (%j) is reported at once", async (options) => {
    const service = fakeService(WHOLE);
    const message = await ask(service, { model: keyed, noKey: true, options });
    expect(service.requests).toEqual([]);
    expect(message.stopReason).toBe("error");
    expect(message.failure).toEqual({ kind: "auth", retryable: false });
    expect(message.errorMessage).toBe(
      "There is no key for OpenAI. Pass options.apiKey or getApiKey, or set OPENAI_API_KEY.",
    );
  });

  it("is not needed by a service that is named by its address alone", async () => {
    const { sent, stopReason } = await ask(WHOLE, { noKey: true });
    expect(stopReason).toBe("stop");
    expect(sent[0]?.headers).not.toHaveProperty("authorization");
  });

  it("goes the way that the service wants", async () => {
    const azure = { ...model, provider: "azure-openai" };
    const { sent } = await ask(WHOLE, { model: azure });
    expect(sent[0]?.headers).toMatchObject({ "api-key": KEY });
    expect(sent[0]?.headers).not.toHaveProperty("authorization");
  });

  it("goes the way that a service of one's own says", async () => {
    const aviary = {
      id: "aviary",
      name: "Aviary",
      api: "parrot",
      baseUrl: "https://own.example",
      keyEnv: [],
      urlEnv: [],
      auth: "api-key",
    } as const;
    const { baseUrl: _, ...nowhere } = model;
    const { sent } = await ask(WHOLE, { model: nowhere, config: { services: [aviary] } });
    expect(sent[0]?.url).toBe("https://own.example/say");
    expect(sent[0]?.headers["api-key"]).toBe(KEY);
  });

  it("may be refused with an error that says itself what it is", async () => {
    const failure = { kind: "auth" as const, retryable: false };
    const refused = Object.assign(new Error("Not in the vault."), { failure });
    const getApiKey = (): Promise<string> => Promise.reject(refused);
    const message = await ask(WHOLE, { config: { getApiKey }, noKey: true });
    expect(message).toMatchObject({ errorMessage: "Not in the vault.", failure });
  });

  it("may be refused with any other error", async () => {
    const getApiKey = (): string => {
      throw new TypeError("The vault is shut.");
    };
    const message = await ask(WHOLE, { config: { getApiKey }, noKey: true });
    expect(message).toMatchObject({
      stopReason: "error",
      errorMessage: "The vault is shut.",
      failure: { retryable: false },
    });
    expect(message.sent).toEqual([]);
  });
});

describe("the address", () => {
  const config: ProviderConfig = { getBaseUrl: () => "https://mirror.example/v2" };

  it("is the model's before all", async () => {
    const { sent } = await ask(WHOLE, { config });
    expect(sent[0]?.url).toBe("https://aviary.example/v1/say");
  });

  it("is what getBaseUrl says for its service", async () => {
    const { sent } = await ask(WHOLE, { config, model: keyed });
    expect(sent[0]?.url).toBe("https://mirror.example/v2/say");
  });

  it.each([undefined, ""])("is the preset's where none is given (%j)", async (nothing) => {
    const { sent } = await ask(WHOLE, { config: { getBaseUrl: () => nothing }, model: keyed });
    expect(sent[0]?.url).toBe("https://api.openai.com/v1/say");
  });

  it("may end in slashes", async () => {
    const { sent } = await ask(WHOLE, { model: { ...model, baseUrl: "https://a.example/v1//" } });
    expect(sent[0]?.url).toBe("https://a.example/v1/say");
  });

  it("that is not known is reported, with what to set", async () => {
    const { baseUrl: _, ...nowhere } = model;
    const message = await ask(WHOLE, { model: nowhere });
    expect(message.failure).toEqual({ kind: "bad_request", retryable: false });
    expect(message.errorMessage).toBe(
      'The address of aviary is not known: give model "polly-1" a baseUrl, or set AVIARY_BASE_URL.',
    );
    expect(message.sent).toEqual([]);
  });
});

describe("headers", () => {
  it("of the model replace the format's, those of the options replace all, in any case", async () => {
    const { sent } = await ask(WHOLE, {
      model: { ...model, headers: { "X-Format": "model", "X-Both": "model", "x-model": "m" } },
      options: { headers: { "x-both": "options", AUTHORIZATION: "Basic b3duOmtleQ==" } },
    });
    expect(sent[0]?.headers).toMatchObject({
      "x-format": "model",
      "x-both": "options",
      "x-model": "m",
      authorization: "Basic b3duOmtleQ==",
    });
  });

  it("of the options win also where those between are written differently", async () => {
    const { sent } = await ask(WHOLE, {
      model: { ...model, headers: { "X-FORMAT": "model" } },
      options: { headers: { "x-format": "options" } },
    });
    expect(sent[0]?.headers["x-format"]).toBe("options");
  });
});

describe("onPayload", () => {
  it("sees the body, and changes nothing by looking", async () => {
    const seen: unknown[] = [];
    const { sent } = await ask(WHOLE, {
      options: { onPayload: (payload, asked) => void seen.push(payload["model"], asked.id) },
    });
    expect(seen).toEqual(["polly-1", "polly-1"]);
    expect(sent[0]?.body).toMatchObject({ model: "polly-1" });
  });

  it("may answer with another body, at once or later", async () => {
    const now = await ask(WHOLE, { options: { onPayload: () => ({ mine: 1 }) } });
    expect(now.sent[0]?.body).toEqual({ mine: 1 });
    const later = await ask(WHOLE, { options: { onPayload: async () => ({ mine: 2 }) } });
    expect(later.sent[0]?.body).toEqual({ mine: 2 });
  });

  it("that throws ends the response as a hook's failure, and nothing is sent", async () => {
    const message = await ask(WHOLE, {
      options: { onPayload: () => Promise.reject(new Error(`bad hook with ${KEY}`)) },
    });
    expect(message).toMatchObject({
      stopReason: "error",
      errorMessage: "onPayload threw: bad hook with [redacted]",
      failure: { kind: "hook", retryable: false },
    });
    expect(message.sent).toEqual([]);
  });

  it("that never answers does not hold up an abort", async () => {
    const control = new AbortController();
    const service = fakeService(WHOLE);
    const asked = await start(service.fetch, {
      options: { signal: control.signal, onPayload: () => new Promise(() => {}) },
    });
    await asked.clock.turn();
    control.abort();
    expect(asked.closed()).toBe(true);
    expect(service.requests).toEqual([]);
  });
});

describe("onResponse", () => {
  it("sees status, address and headers, without a secret in any of them", async () => {
    const seen: unknown[] = [];
    await ask(
      fakeService(
        {
          status: 307,
          headers: { location: `/v1/say?tag=${KEY}`, "set-cookie": "id=1", "x-echo": `is ${KEY}` },
        },
        WHOLE,
      ),
      { options: { onResponse: (response) => void seen.push(response) } },
    );
    expect(seen).toMatchObject([
      {
        status: 307,
        url: "https://aviary.example/v1/say",
        headers: { "set-cookie": "[redacted]", "x-echo": "is [redacted]" },
      },
      { status: 200, url: "https://aviary.example/v1/say?tag=[redacted]" },
    ]);
    expect(JSON.stringify(seen)).not.toContain(KEY);
  });

  it("that throws ends the response as a hook's failure, and lets the connection go", async () => {
    const body = openBody();
    const { clock, result } = await start(answering(body.response), {
      options: {
        onResponse: () => {
          throw new Error("no room in the log");
        },
      },
    });
    expect(await result).toMatchObject({
      errorMessage: "onResponse threw: no room in the log",
      failure: { kind: "hook", retryable: false },
    });
    await clock.turn();
    expect(body.canceled()).toBe(true);
  });
});

describe("a key that the service says back", () => {
  const words = `We do not know the key ${KEY} of yours`;
  const url = encodeURIComponent(KEY);
  const cases: Record<string, FakeAnswer> = {
    "in an error": { status: 401, body: JSON.stringify({ error: { message: words } }) },
    "in an error that is text": { status: 400, body: words },
    "in an error of a stream": { body: HELLO + sse({ error: { message: words } }) },
    "in JSON with status 200": { body: JSON.stringify({ error: { message: words } }) },
    "in a page": { status: 502, body: `<html><title>${words}</title></html>` },
    "in a page with status 200": { body: `<html><title>${words}</title></html>` },
    "in a redirect": { status: 307, headers: { location: `https://b.example/${url}?k=${url}` } },
    "as the host of a redirect": { status: 307, headers: { location: `https://${KEY}.example/` } },
    "in a redirect that is not followed": { status: 302, headers: { location: `/${KEY}` } },
    "in an event that is no JSON": { body: sse(`oops ${words}`) },
    "in an event that is cut": { body: `data: {"say":"${KEY}` },
    "in the error of a connection": { breaks: new Error(words) },
    "in base64": { status: 400, body: btoa(`user:${KEY}`) },
  };
  it.each(Object.keys(cases))("%s is shown nowhere", async (name) => {
    const { result, events } = await start(fakeService(cases[name] ?? "").fetch);
    const message = await result;
    expect(message.stopReason).toBe("error");
    expect(message.errorMessage).not.toBe("");
    const shown = JSON.stringify([message.errorMessage, message.failure, message.report]);
    expect(shown).not.toContain(KEY);
    expect(shown).not.toContain(btoa(KEY).slice(2, 20));
    const errors = events.flatMap((event) => (event.type === "error" ? [event.error] : []));
    expect(JSON.stringify(errors.map(({ errorMessage }) => errorMessage))).not.toContain(KEY);
  });

  it("is hidden where fetch itself throws it", async () => {
    const fetch = (() => Promise.reject(new TypeError(words))) as typeof globalThis.fetch;
    const { result } = await start(fetch);
    expect((await result).errorMessage).not.toContain(KEY);
  });

  it("is hidden in parts, where it has parts", async () => {
    const secret = "wJalrXUtnFEMI0K7MDENGbPxRfiCYzzzzzzzzKEY";
    const options = { apiKey: `AKIAIOSFODNN7ZZZZZZZ:${secret}` };
    const message = await ask({ status: 403, body: `Signed with ${secret}` }, { options });
    expect(message.errorMessage).toContain("[redacted]");
    expect(message.errorMessage).not.toContain(secret);
  });
});

describe("an abort", () => {
  const aborted = {
    stopReason: "aborted",
    errorMessage: "The request was aborted.",
    failure: { kind: "aborted", retryable: false },
  };

  it("before the request: nothing is sent or looked up", async () => {
    const service = fakeService(WHOLE);
    const { clock, result } = await start(service.fetch, {
      config: { getApiKey: () => expect.unreachable() },
      noKey: true,
      options: { signal: AbortSignal.abort() },
    });
    expect(await result).toMatchObject(aborted);
    expect(service.requests).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it("while the key is looked up: nothing is sent, whenever the key comes", async () => {
    const control = new AbortController();
    const service = fakeService(WHOLE);
    let give = (_key: string): void => {};
    let given: AbortSignal | undefined;
    const asked = await start(service.fetch, {
      config: {
        getApiKey: (_, signal) => {
          given = signal;
          return new Promise((resolve) => (give = resolve));
        },
      },
      noKey: true,
      options: { signal: control.signal },
    });
    await vi.waitFor(() => expect(given).toBeDefined());
    control.abort();
    expect(asked.closed()).toBe(true);
    expect(given?.aborted).toBe(true);
    give(KEY);
    expect(await asked.result).toMatchObject(aborted);
    await asked.clock.turn();
    expect(service.requests).toEqual([]);
    expect(asked.clock.pending).toBe(0);
  });

  it("while a request is signed: nothing is sent", async () => {
    const control = new AbortController();
    const service = fakeService(WHOLE);
    let signed = (_headers: Record<string, string>): void => {};
    const format: ApiFormat = {
      ...parrot,
      writeRequest: (request) => ({
        ...parrot.writeRequest(request),
        sign: () => new Promise((resolve) => (signed = resolve)),
      }),
    };
    const asked = await start(service.fetch, { format, options: { signal: control.signal } });
    await asked.clock.turn();
    control.abort();
    expect(asked.closed()).toBe(true);
    signed({});
    await asked.clock.turn();
    expect(service.requests).toEqual([]);
  });

  it.each([false, true])("while no answer comes, with a fetch that is deaf: %s", async (deaf) => {
    const control = new AbortController();
    const hand = byHand({ deaf });
    const seen: unknown[] = [];
    const asked = await start(hand.fetch, {
      options: { signal: control.signal, onResponse: (response) => void seen.push(response) },
    });
    await asked.clock.turn();
    expect(hand.asked()).toBe(1);
    control.abort();
    expect(asked.closed()).toBe(true);
    expect(await asked.result).toMatchObject(aborted);
    // A late answer is released and ignored.
    const late = openBody();
    hand.answer(late.response);
    await asked.clock.turn();
    if (deaf) expect(late.canceled()).toBe(true);
    expect(seen).toEqual([]);
    expect(asked.events.map(({ type }) => type)).toEqual(["error"]);
    expect(asked.clock.pending).toBe(0);
  });

  it("while onResponse thinks about it: the body is released", async () => {
    const control = new AbortController();
    const body = openBody();
    let go = (): void => {};
    const asked = await start(answering(body.response), {
      options: {
        signal: control.signal,
        onResponse: () => new Promise<void>((resolve) => (go = resolve)),
      },
    });
    await asked.clock.turn();
    control.abort();
    expect(asked.closed()).toBe(true);
    go();
    await asked.clock.turn();
    expect(body.canceled()).toBe(true);
  });

  it("at any byte of the body: what had come is kept, the connection is released", async () => {
    const bytes = new TextEncoder().encode(HELLO);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const control = new AbortController();
      const body = openBody();
      const asked = await start(answering(body.response), { options: { signal: control.signal } });
      if (cut > 0) body.send(bytes.slice(0, cut));
      await asked.clock.turn();
      control.abort();
      expect(asked.closed()).toBe(true);
      const message = await asked.result;
      expect(message).toMatchObject(aborted);
      expect("Hello".startsWith(joinText(message))).toBe(true);
      await asked.clock.turn();
      expect(body.canceled()).toBe(true);
      expect(asked.events.filter(({ type }) => type === "error")).toHaveLength(1);
      expect(getEventListeners(control.signal, "abort")).toEqual([]);
      expect(asked.clock.pending).toBe(0);
    }
  });

  it("while an error's body is read", async () => {
    const control = new AbortController();
    const body = openBody({}, 500);
    const asked = await start(answering(body.response), { options: { signal: control.signal } });
    body.send("Something");
    await asked.clock.turn();
    control.abort();
    expect(asked.closed()).toBe(true);
    expect(await asked.result).toMatchObject(aborted);
    await asked.clock.turn();
    expect(body.canceled()).toBe(true);
  });

  it("after the end does nothing", async () => {
    const control = new AbortController();
    const asked = await start(fakeService(WHOLE).fetch, { options: { signal: control.signal } });
    await asked.result;
    await asked.clock.turn();
    const heard = asked.events.length;
    control.abort();
    await asked.clock.turn();
    expect(asked.events).toHaveLength(heard);
    expect(await asked.result).toMatchObject({ stopReason: "stop" });
  });

  it("that the caller did not ask for is a fault of the network, not an abort", async () => {
    const aborted = new DOMException("This operation was aborted", "AbortError");
    const fetch = (() => Promise.reject(aborted)) as typeof globalThis.fetch;
    const { result } = await start(fetch);
    expect(await result).toMatchObject({
      stopReason: "error",
      failure: { kind: "network", retryable: true },
    });
  });
});

describe("whatever happens, nothing stays behind", () => {
  const failing: Record<string, FakeAnswer | string> = {
    "a whole answer": WHOLE,
    "an error": { status: 500, body: "no" },
    "an error in the stream": sse({ error: { message: "no" } }),
    "an early end": HELLO,
    "a broken connection": { body: HELLO, breaks: new Error("socket") },
    "an answer that ends while the connection stays": { body: WHOLE, open: true },
    "a page": "<html></html>",
  };
  it.each(Object.keys(failing))("after %s", async (name) => {
    const control = new AbortController();
    const service = fakeService(failing[name] ?? "");
    const { clock, result } = await start(service.fetch, {
      options: { signal: control.signal, timeoutMs: 60_000 },
    });
    await result;
    await clock.turn();
    expect(getEventListeners(control.signal, "abort")).toEqual([]);
    await clock.advance(DRAIN_MS);
    expect(clock.pending).toBe(0);
    // A body that was read to its end leaves nothing to release.
    expect(service.requests[0]?.signal?.aborted).toBe(name !== "a whole answer");
  });
});

describe("time", () => {
  const TIMEOUT_MS = 5_000;
  const IDLE_MS = 1_000;

  it("is limited by timeoutMs, however busy the service is", async () => {
    const body = openBody();
    const asked = await start(answering(body.response), { options: { timeoutMs: TIMEOUT_MS } });
    for (let second = 1; second < 5; second++) {
      body.send(sse({ say: "." }));
      await asked.clock.advance(1_000);
    }
    await asked.clock.advance(999);
    expect(asked.closed()).toBe(false);
    await asked.clock.advance(1);
    expect(await asked.result).toMatchObject({
      content: [{ text: "...." }],
      errorMessage: "aviary had not finished after 5 s, which is what timeoutMs allows.",
      failure: { kind: "timeout" },
    });
    expect(body.canceled()).toBe(true);
    expect(asked.clock.pending).toBe(0);
  });

  it("runs also while a key is looked up", async () => {
    const asked = await start(fakeService(WHOLE).fetch, {
      config: { getApiKey: () => new Promise(() => {}) },
      noKey: true,
      options: { timeoutMs: TIMEOUT_MS },
    });
    await asked.clock.advance(TIMEOUT_MS);
    expect(await asked.result).toMatchObject({ failure: { kind: "timeout" } });
  });

  it("without an answer is a timeout", async () => {
    const asked = await start(byHand().fetch);
    await asked.clock.advance(DEFAULT_FIRST_BYTE_MS - 1);
    expect(asked.closed()).toBe(false);
    await asked.clock.advance(1);
    expect(await asked.result).toMatchObject({
      errorMessage: "aviary did not answer for 300 s. Try again, or look at its status page.",
      failure: { kind: "timeout" },
    });
    expect(asked.clock.pending).toBe(0);
  });

  it("without a byte, once there were some, is a stall; what had come is kept", async () => {
    const body = openBody();
    const asked = await start(answering(body.response), {
      config: { watchdog: { betweenBytesMs: IDLE_MS } },
    });
    body.send(HELLO);
    await asked.clock.advance(IDLE_MS - 1);
    expect(asked.closed()).toBe(false);
    await asked.clock.advance(1);
    expect(await asked.result).toMatchObject({
      content: [{ text: "Hello" }],
      errorMessage: "aviary went silent for 1 s. Try again, or look at its status page.",
      failure: { kind: "stalled" },
    });
    expect(body.canceled()).toBe(true);
    expect(asked.clock.pending).toBe(0);
  });

  it("goes on with each byte, also of a comment", async () => {
    const body = openBody();
    const asked = await start(answering(body.response), {
      config: { watchdog: { betweenBytesMs: IDLE_MS } },
    });
    for (let wait = 0; wait < 5; wait++) {
      body.send(":\n");
      await asked.clock.advance(IDLE_MS - 1);
    }
    expect(asked.closed()).toBe(false);
    body.send(WHOLE);
    expect(joinText(await asked.result)).toBe("Hello");
  });

  it("is not watched with limits of 0", async () => {
    const asked = await start(byHand().fetch, {
      config: { watchdog: { firstByteMs: 0, betweenBytesMs: 0 } },
    });
    await asked.clock.turn();
    expect(asked.clock.pending).toBe(0);
  });

  it("after the model is finished is short", async () => {
    const body = openBody();
    const asked = await start(answering(body.response));
    body.send(HELLO + sse({ last: true }));
    await asked.clock.advance(AFTER_FINISH_MS - 1);
    expect(asked.closed()).toBe(false);
    await asked.clock.advance(1);
    expect(await asked.result).toMatchObject({ stopReason: "stop", content: [{ text: "Hello" }] });
    expect(asked.clock.pending).toBe(0);
    expect(body.canceled()).toBe(true);
  });

  it("after the model is finished begins again with each event, but not with a comment", async () => {
    const body = openBody();
    const asked = await start(answering(body.response));
    body.send(HELLO + sse({ last: true }));
    await asked.clock.advance(AFTER_FINISH_MS - 1);
    body.send(sse({ figures: 1 }));
    await asked.clock.advance(AFTER_FINISH_MS - 1);
    expect(asked.closed()).toBe(false);
    body.send(":\n\n");
    await asked.clock.advance(1);
    expect(await asked.result).toMatchObject({ stopReason: "stop" });
  });

  it("is the usual again where a model goes on after it was finished", async () => {
    const body = openBody();
    const asked = await start(answering(body.response));
    body.send(HELLO + sse({ last: true }));
    await asked.clock.advance(1);
    body.send(sse({ say: "!", last: false }));
    await asked.clock.advance(DEFAULT_BETWEEN_BYTES_MS - 1);
    expect(asked.closed()).toBe(false);
    body.send(sse({ end: true }));
    expect(joinText(await asked.result)).toBe("Hello!");
  });

  it("is not spent on an error whose body does not end", async () => {
    const body = openBody({ "retry-after": "7" }, 429);
    const asked = await start(answering(body.response));
    body.send("Slow down");
    await asked.clock.advance(AFTER_FINISH_MS);
    expect(await asked.result).toMatchObject({
      failure: { kind: "rate_limit", status: 429, retryAfterMs: 7_000 },
    });
    expect(asked.clock.pending).toBe(0);
    expect(body.canceled()).toBe(true);
  });
});

describe("an answer that is no stream", () => {
  it.each(["", " ", "\n\r\n", "\uFEFF"])(
    "is read as the JSON that it is (after %j)",
    async (lead) => {
      const body = `${lead}{"error":{"type":"overloaded_error","message":"Übervoll"}}`;
      for (const pieces of [[body], [...body]]) {
        const message = await ask({ body: pieces.map((piece) => piece) });
        expect(message.failure).toMatchObject({ kind: "overloaded" });
        expect(message.errorMessage).toContain("Übervoll");
      }
    },
  );

  it("is read whole where a character is cut", async () => {
    const bytes = new TextEncoder().encode('{"error":{"message":"Übervoll"}}');
    const cut = bytes.indexOf(0xc3) + 1;
    const message = await ask({ body: [bytes.slice(0, cut), bytes.slice(cut)] });
    expect(message.errorMessage).toContain("Übervoll");
  });

  it("may be a list of errors", async () => {
    const body = JSON.stringify([{ error: { code: 429, message: "Too many requests" } }]);
    expect(await ask({ body })).toMatchObject({ failure: { kind: "rate_limit" } });
  });

  it("may be a page of something in between", async () => {
    const body = "<!doctype html><html><title>Sign in</title></html>";
    const message = await ask({ body, headers: { "content-type": "text/html" } });
    expect(message.stopReason).toBe("error");
    expect(message.errorMessage).toMatch(/an HTML page .* from aviary\.example, titled "Sign in"/);
  });

  it("may be nothing at all", async () => {
    const message = await ask("");
    expect(message).toMatchObject({
      content: [],
      errorMessage: "The response of aviary ended early. Try again.",
      failure: { kind: "incomplete" },
    });
  });

  it("may have no body", async () => {
    const { result } = await start(answering(new Response(null, { status: 204 })));
    expect(await result).toMatchObject({
      errorMessage: "The response of aviary has no body. Try again.",
      failure: { kind: "incomplete" },
    });
  });

  it("is read up to a limit", async () => {
    const piece = "x".repeat(100_000);
    const message = await ask({ status: 500, body: [piece, piece, piece, piece], open: true });
    expect(message.failure).toMatchObject({ status: 500 });
    expect(message.errorMessage?.length).toBeLessThan(1_000);
  });
});

describe("the end of a body", () => {
  const INCOMPLETE = { kind: "incomplete", retryable: true };

  it("before the end of the response makes it incomplete", async () => {
    const message = await ask(HELLO);
    expect(message).toMatchObject({
      content: [{ text: "Hello" }],
      stopReason: "error",
      errorMessage: "The response of aviary ended early. Try again.",
      failure: INCOMPLETE,
    });
  });

  it("in the middle of an event keeps what it says, but never makes the response whole", async () => {
    const text = await ask(`${HELLO}data: {"say":"!"}`);
    expect(text).toMatchObject({
      content: [{ text: "Hello!" }],
      errorMessage: "The response of aviary ended in the middle of an event. Try again.",
      failure: INCOMPLETE,
    });
    const end = await ask(`${HELLO}data: {"end":true}`);
    expect(end).toMatchObject({ stopReason: "error", failure: INCOMPLETE });
    const torn = await ask(`${HELLO}data: {"say":"!`);
    expect(torn).toMatchObject({ content: [{ text: "Hello" }], failure: INCOMPLETE });
  });

  it("at any byte gives exactly one end", async () => {
    const bytes = new TextEncoder().encode(WHOLE);
    for (let cut = 0; cut < bytes.length; cut++) {
      const asked = await start(fakeService({ body: bytes.slice(0, cut) }).fetch);
      expect(await asked.result).toMatchObject({ stopReason: "error", failure: INCOMPLETE });
      await asked.clock.turn();
      expect(asked.events.at(-1)?.type).toBe("error");
      expect(asked.events.filter(({ type }) => type === "error")).toHaveLength(1);
    }
  });

  it("is enough once the model is finished, clean or not", async () => {
    const finished = { stopReason: "stop", content: [{ text: "Hello" }] };
    expect(await ask(HELLO + sse({ last: true }))).toMatchObject(finished);
    const body = openBody();
    const { clock, result } = await start(answering(body.response));
    body.send(HELLO + sse({ last: true }));
    await clock.turn();
    body.breakOff(new TypeError("terminated"));
    expect(await result).toMatchObject(finished);
  });

  it("that breaks before is incomplete; what had come is kept", async () => {
    const body = openBody();
    const { clock, result } = await start(answering(body.response));
    body.send(HELLO);
    await clock.turn();
    body.breakOff(new TypeError("terminated"));
    expect(await result).toMatchObject({ content: [{ text: "Hello" }], failure: INCOMPLETE });
  });

  it("does not matter after the response's own end: what follows is dropped", async () => {
    const message = await ask(WHOLE + sse({ say: "more" }, { error: { message: "no" } }));
    expect(message).toMatchObject({ stopReason: "stop", report: { events: 3 } });
    expect(joinText(message)).toBe("Hello");
  });
});

describe("errors inside", () => {
  it.each(["request", "reader", "read"] as const)(
    "a format that throws in %s ends",
    async (where) => {
      const fault = (): never => {
        throw new RangeError("out of perches");
      };
      const format: ApiFormat =
        where === "request"
          ? { ...parrot, writeRequest: fault }
          : where === "reader"
            ? { ...parrot, createReader: fault }
            : { ...parrot, createReader: () => ({ read: fault, end() {} }) };
      const message = await ask(WHOLE, { format });
      expect(message.stopReason).toBe("error");
      expect(message.errorMessage).toContain("out of perches");
    },
  );

  it("an event that is no JSON makes the response incomplete", async () => {
    const message = await ask(HELLO + sse("not JSON"));
    expect(message.failure).toMatchObject({ kind: "incomplete" });
    expect(message.errorMessage).toContain("an event that is not a JSON object: not JSON");
  });
});

describe("the body", () => {
  const lone = "\uD83D";

  it("has no lone surrogate in it, however deep, in values and in names", async () => {
    const parameters = {
      type: "object",
      properties: { [`a${lone}`]: { type: "string", description: `b${lone}` } },
    };
    const context: Partial<Context> = {
      systemPrompt: `kept: 🦜, \\ud83d; replaced: ${lone}`,
      tools: [{ name: "squawk", description: "Says it", parameters }],
    };
    const { sent } = await ask(WHOLE, { context });
    expect(sent[0]?.body).toMatchObject({
      systemPrompt: "kept: 🦜, \\ud83d; replaced: \uFFFD",
      tools: [
        {
          parameters: {
            type: "object",
            properties: { "a\uFFFD": { type: "string", description: "b\uFFFD" } },
          },
        },
      ],
    });
  });

  const loop: Record<string, unknown> = {};
  loop["self"] = loop;
  it.each([
    ["a BigInt", { count: 1n }],
    ["a circle", loop],
    ["a function", () => 1],
  ])("that holds %s is refused before it is sent", async (_, payload) => {
    const message = await ask(WHOLE, { options: { onPayload: () => payload } });
    expect(message.failure).toEqual({ kind: "bad_request", retryable: false });
    expect(message.errorMessage).toMatch(/^The request for aviary cannot be written as JSON: .+/);
    expect(message.sent).toEqual([]);
  });
});

describe("a redirect", () => {
  const to = (location: string, status = 307): FakeAnswer => ({ status, headers: { location } });

  it.each([307, 308])("%i within the origin is followed, with body and key", async (status) => {
    const service = fakeService(to("/v2/say?x=1", status), WHOLE);
    const message = await ask(service);
    expect(joinText(message)).toBe("Hello");
    expect(service.requests.map(({ url }) => url)).toEqual([
      "https://aviary.example/v1/say",
      "https://aviary.example/v2/say?x=1",
    ]);
    const [first, second] = service.requests;
    expect(second?.headers).toEqual(first?.headers);
    expect(second?.body).toEqual(first?.body);
  });

  it("is signed again", async () => {
    const signed: string[] = [];
    const format: ApiFormat = {
      ...parrot,
      writeRequest: (request) => ({
        ...parrot.writeRequest(request),
        sign: ({ url, headers }) => {
          signed.push(url);
          return Promise.resolve({ ...headers, "x-signed": url });
        },
      }),
    };
    const { sent } = await ask(fakeService(to("/v2/say"), WHOLE), { format });
    expect(signed).toEqual(["https://aviary.example/v1/say", "https://aviary.example/v2/say"]);
    expect(sent[1]?.headers["x-signed"]).toBe("https://aviary.example/v2/say");
  });

  it("is followed three times, and then no more", async () => {
    const three = await ask(fakeService(to("/1"), to("/2"), to("/3"), WHOLE));
    expect(joinText(three)).toBe("Hello");
    const four = await ask(fakeService(to("/1"), to("/2"), to("/3"), to("/4"), WHOLE));
    expect(four.sent).toHaveLength(4);
    expect(four).toMatchObject({
      failure: { kind: "bad_request", retryable: false },
      errorMessage:
        "aviary redirects again and again (last to aviary.example). Check the model's baseUrl.",
    });
  });

  it.each([
    "https://other.example/v1/say",
    "http://aviary.example/v1/say",
    "//aviary.example:444/",
  ])("to another origin is refused, and the key stays here: %s", async (location) => {
    const message = await ask(fakeService(to(location), WHOLE));
    expect(message.sent).toHaveLength(1);
    const { host, origin } = new URL(location, "https://aviary.example");
    expect(message).toMatchObject({
      failure: { kind: "bad_request", retryable: false, status: 307 },
      errorMessage: `aviary redirects to ${host}, where the key is not sent. If that is right, give the model a baseUrl at ${origin}.`,
    });
  });

  it.each([301, 302, 303])("%i is refused: it would drop the body", async (status) => {
    const message = await ask(fakeService(to("/v2/say?key=1", status), WHOLE));
    expect(message.sent).toHaveLength(1);
    expect(message).toMatchObject({
      failure: { kind: "bad_request", retryable: false, status },
      errorMessage: `aviary redirects with status ${status} to https://aviary.example/v2/say, which drops the request's body. Set the model's baseUrl to the address that is meant.`,
    });
  });

  it("that a browser hides is reported as one", async () => {
    const hidden = Object.defineProperty(Response.error(), "type", { value: "opaqueredirect" });
    const { result } = await start(answering(hidden));
    expect(await result).toMatchObject({
      failure: { kind: "bad_request", retryable: false },
      errorMessage:
        "aviary redirects, and a browser does not show where to. Set the model's baseUrl to the address that is meant.",
    });
  });

  it("without a place to go is an error like others", async () => {
    const message = await ask({ status: 307 });
    expect(message.stopReason).toBe("error");
    expect(message.failure).toMatchObject({ status: 307 });
  });
});
