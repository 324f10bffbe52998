import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import type { Model } from "../messages/messages.ts";
import { textOf } from "../messages/text.ts";
import { ProviderError } from "../providers/errors/provider-error.ts";
import type { FetchRequest } from "../providers/http/fetch.ts";
import { SERVICES } from "../providers/services/presets.ts";
import { manualClock } from "../testing/manual-clock.ts";
import {
  type BatchResult,
  cancelBatch,
  checkBatch,
  collectBatch,
  type CollectOptions,
  submitBatch,
} from "./batch.ts";
import { type Cut, type FakeBatches, fakeBatches, type Outcome } from "./fake-batches.ts";
import { LineQueue, MAX_QUEUED_CHARS } from "./line-queue.ts";
import type { BatchRequest } from "./requests.ts";

const KEY = "test-key-0123456789";
const PRICE = { input: 2, output: 10 };

function modelAt(provider: string, id: string): Model {
  const api = SERVICES.find((service) => service.id === provider)?.api ?? "openai-completions";
  return { id, name: id, provider, api, baseUrl: "https://api.example/v1", price: PRICE };
}

const MODELS = {
  anthropic: modelAt("anthropic", "claude-sonnet-4-5"),
  openai: modelAt("openai", "gpt-4.1"),
  google: modelAt("google", "gemini-2.5-flash"),
} as const;
type Kind = keyof typeof MODELS;
const KINDS: readonly Kind[] = ["anthropic", "openai", "google"];

function requests(count: number): BatchRequest[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `item-${at}`,
    context: { messages: [{ role: "user", content: `Question ${at}` }] },
    options: { maxTokens: 100 },
  }));
}

async function collect(
  fake: FakeBatches,
  kind: Kind,
  id: string,
  options: CollectOptions = {},
): Promise<BatchResult[]> {
  const results: BatchResult[] = [];
  const config = { fetch: fake.fetch };
  for await (const result of collectBatch(config, MODELS[kind], id, { apiKey: KEY, ...options })) {
    results.push(result);
  }
  return results;
}

function compareIds(one: BatchResult, other: BatchResult): number {
  return Number(one.id.slice("item-".length)) - Number(other.id.slice("item-".length));
}

/** What is compared of a result. */
function describeResult({ id, message }: BatchResult): unknown {
  const call = message.content.find((block) => block.type === "toolCall");
  return [id, message.stopReason, call?.arguments ?? textOf(message), message.failure?.kind];
}

const KIND_OF_STATUS = { 400: "bad_request", 429: "rate_limit", 500: undefined } as const;

function expectResult(id: string, outcome: Outcome): unknown {
  switch (outcome.type) {
    case "text":
      return [id, "stop", outcome.text, undefined];
    case "call":
      return [id, "toolUse", outcome.arguments, undefined];
    case "canceled":
      return [id, "aborted", "", "aborted"];
    case "expired":
      return [id, "error", "", "timeout"];
    case "error":
      return [id, "error", "", KIND_OF_STATUS[outcome.status] ?? expect.any(String)];
  }
}

const MIXED: readonly Outcome[] = [
  { type: "text", text: "Forty-two. 🐦" },
  { type: "call", arguments: { path: "a\nb" } },
  { type: "error", status: 400 },
  { type: "error", status: 429 },
  { type: "error", status: 500 },
  { type: "canceled" },
  { type: "expired" },
];

describe.each(KINDS)("a batch of %s", (kind) => {
  const model = MODELS[kind];

  it("is submitted, waited for, and collected in another process by its id", async () => {
    const clock = manualClock();
    const fake = fakeBatches(kind, { outcomes: MIXED, polls: 2 });
    const config = { fetch: fake.fetch };
    const batch = await submitBatch(config, model, requests(7), { apiKey: KEY });
    expect(batch.state).toBe("running");
    const states: string[] = [];
    const collecting = collect(fake, kind, batch.id, {
      clock,
      pollMs: 5_000,
      onStatus: ({ state }) => states.push(state),
    });
    await clock.advance(10_000);
    const results = await collecting;
    const expected = MIXED.map((outcome, at) => expectResult(`item-${at}`, outcome));
    expect(results.toSorted(compareIds).map(describeResult)).toEqual(expected);
    expect(states).toEqual(["running", "running", "ended"]);
    // At half of the price.
    const [first] = results.filter(({ id }) => id === "item-0");
    expect(first?.message.usage).toMatchObject({
      input: 1_000_000,
      output: 1_000_000,
      serviceTier: "batch",
      cost: { input: 1, output: 5, total: 6 },
    });
    expect(first?.message).toMatchObject({ provider: model.provider, model: model.id });
    // No request has the key anywhere but in its header.
    for (const { body, url } of fake.sent) expect(body + url).not.toContain(KEY);
    expect((await checkBatch(config, model, batch.id, { apiKey: KEY })).state).toBe("ended");
  });

  it("is canceled", async () => {
    const fake = fakeBatches(kind, { outcomes: [{ type: "canceled" }], polls: 100 });
    const config = { fetch: fake.fetch };
    const { id } = await submitBatch(config, model, requests(2), { apiKey: KEY });
    await cancelBatch(config, model, id, { apiKey: KEY });
    expect(fake.sent.at(-1)).toMatchObject({ method: "POST" });
    expect(fake.sent.at(-1)?.url).toMatch(/[/:]cancel$/);
    const results = await collect(fake, kind, id);
    expect(results.map(({ message }) => message.stopReason)).toEqual(["aborted", "aborted"]);
  });

  it("is not submitted twice where the first request may have arrived", async () => {
    const fake = fakeBatches(kind, { outcomes: MIXED });
    let asked = 0;
    const failed = submitBatch(
      {
        fetch: (url, init) => {
          if (url.endsWith("/files")) return fake.fetch(url, init);
          asked++;
          return Promise.reject(new TypeError("fetch failed"));
        },
      },
      model,
      requests(1),
      { apiKey: KEY },
    );
    await expect(failed).rejects.toThrow(/not known whether there is a batch/);
    await expect(failed).rejects.toMatchObject({ kind: "network", retryable: false });
    expect(asked).toBe(1);
  });

  it.each([500, 502, 504, 524])(
    "is not submitted twice where a gateway does not know: %i",
    async (status) => {
      const fake = fakeBatches(kind, { outcomes: MIXED });
      let asked = 0;
      const fetch = (url: string, init: FetchRequest): Promise<Response> => {
        if (url.endsWith("/files")) return fake.fetch(url, init) as Promise<Response>;
        asked++;
        return Promise.resolve(new Response("{}", { status }));
      };
      const retry = { baseDelayMs: 0 };
      const failed = submitBatch({ fetch }, model, requests(1), { apiKey: KEY, retry });
      await expect(failed).rejects.toThrow(/not known whether there is a batch/);
      await expect(failed).rejects.toMatchObject({ status, retryable: false });
      expect(asked).toBe(1);
    },
  );

  it("is not taken for submitted where the answer has no id", async () => {
    let asked = 0;
    const fetch = (): Promise<Response> => {
      asked++;
      return Promise.resolve(Response.json({ status: "in_progress" }));
    };
    const retry = { baseDelayMs: 0, maxRetries: 1 };
    const failed = submitBatch({ fetch }, model, requests(1), { apiKey: KEY, retry });
    await expect(failed).rejects.toMatchObject({ kind: "incomplete" });
    await expect(failed).rejects.toThrow(/no id/);
    // The file of OpenAI may be sent again: it makes no batch.
    expect(asked).toBe(kind === "openai" ? 2 : 1);
  });

  it("is submitted again where the service did not take it", async () => {
    const clock = manualClock();
    const fake = fakeBatches(kind, { outcomes: MIXED });
    let asked = 0;
    const submitting = submitBatch(
      {
        fetch: (url, init) =>
          asked++ === 0
            ? Promise.resolve(new Response("{}", { status: 503, headers: { "retry-after": "1" } }))
            : fake.fetch(url, init),
      },
      model,
      requests(1),
      { apiKey: KEY, clock },
    );
    await clock.advance(1_000);
    expect((await submitting).state).toBe("running");
  });

  it("says which of its requests cannot be sent, before any is", async () => {
    const fake = fakeBatches(kind, { outcomes: MIXED });
    const all = requests(2);
    all[1] = { ...requests(2)[1], id: "item-1", options: { minP: 0.1 }, context: { messages: [] } };
    const failed = submitBatch({ fetch: fake.fetch }, model, all, { apiKey: KEY });
    await expect(failed).rejects.toThrow(
      /The request "item-1" of the batch cannot be sent: .*minP/,
    );
    expect(fake.sent).toEqual([]);
  });

  it("has each id once, and at least one request", async () => {
    const fake = fakeBatches(kind, { outcomes: MIXED });
    const twice = [...requests(1), ...requests(1)];
    const config = { fetch: fake.fetch };
    await expect(submitBatch(config, model, twice)).rejects.toThrow('the id "item-0"');
    await expect(submitBatch(config, model, [])).rejects.toThrow("there is none");
    await expect(checkBatch(config, model, "../files/1")).rejects.toThrow("is no id of a batch");
    expect(fake.sent).toEqual([]);
  });

  it("is no longer waited for when the caller aborts, and goes on", async () => {
    const control = new AbortController();
    const clock = manualClock();
    const fake = fakeBatches(kind, { outcomes: MIXED, polls: 100 });
    const collecting = collect(fake, kind, "batches/1", { clock, signal: control.signal });
    const failed = collecting.catch((error: unknown) => error);
    await clock.advance(60_000);
    control.abort();
    expect(await failed).toMatchObject({ kind: "aborted" });
    expect(clock.pending).toBe(0);
  });

  it("fails like a single call where the key is wrong", async () => {
    const fetch = (): Promise<Response> =>
      Promise.resolve(Response.json({ error: { message: "Invalid key" } }, { status: 401 }));
    const failed = submitBatch({ fetch }, model, requests(1), { apiKey: KEY });
    await expect(failed).rejects.toMatchObject({ kind: "auth", status: 401 });
  });
});

describe("what is sent", () => {
  it("to Anthropic is what the documentation says", async () => {
    const fake = fakeBatches("anthropic", { outcomes: MIXED });
    await submitBatch({ fetch: fake.fetch }, MODELS.anthropic, requests(1), { apiKey: KEY });
    const body: Anthropic.Messages.BatchCreateParams = {
      requests: [
        {
          custom_id: "item-0",
          params: {
            model: "claude-sonnet-4-5",
            max_tokens: 100,
            messages: [
              {
                role: "user",
                content: [
                  { type: "text", text: "Question 0", cache_control: { type: "ephemeral" } },
                ],
              },
            ],
          },
        },
      ],
    };
    expect(fake.sent).toHaveLength(1);
    expect(fake.sent[0]).toMatchObject({
      method: "POST",
      url: "https://api.example/v1/messages/batches",
      headers: { "x-api-key": KEY, "anthropic-version": "2023-06-01" },
    });
    expect(JSON.parse(fake.sent[0]?.body ?? "")).toEqual(body);
  });

  it("to OpenAI is a file, and a batch of it", async () => {
    const fake = fakeBatches("openai", { outcomes: MIXED });
    await submitBatch({ fetch: fake.fetch }, MODELS.openai, requests(2), { apiKey: KEY });
    const [file, batch] = fake.sent;
    const form = await new Response(file?.body, {
      headers: { "content-type": file?.headers["content-type"] ?? "" },
    }).formData();
    expect(form.get("purpose")).toBe("batch");
    const lines = form.get("file");
    if (!(lines instanceof Blob)) throw new Error("It is no file.");
    const [first] = (await lines.text()).trimEnd().split("\n");
    expect(JSON.parse(first ?? "")).toMatchObject({
      custom_id: "item-0",
      method: "POST",
      url: "/v1/responses",
      body: { model: "gpt-4.1", max_output_tokens: 100 },
    });
    expect(first).not.toContain('"stream"');
    const body: OpenAI.BatchCreateParams = {
      input_file_id: "file-1",
      endpoint: "/v1/responses",
      completion_window: "24h",
    };
    expect(JSON.parse(batch?.body ?? "")).toEqual(body);
  });

  it("to Google has the requests in it", async () => {
    const fake = fakeBatches("google", { outcomes: MIXED });
    const { id } = await submitBatch({ fetch: fake.fetch }, MODELS.google, requests(1), {
      apiKey: KEY,
    });
    expect(id).toBe("batches/1");
    expect(fake.sent[0]?.url).toBe(
      "https://api.example/v1/models/gemini-2.5-flash:batchGenerateContent",
    );
    expect(JSON.parse(fake.sent[0]?.body ?? "")).toMatchObject({
      batch: {
        inputConfig: {
          requests: {
            requests: [
              {
                request: { contents: [{ role: "user", parts: [{ text: "Question 0" }] }] },
                metadata: { key: "item-0" },
              },
            ],
          },
        },
      },
    });
  });

  it("to other services is nothing", async () => {
    const failed = submitBatch({}, modelAt("mistral", "m"), requests(1), { apiKey: KEY });
    await expect(failed).rejects.toThrow('"mistral" takes no batches here');
  });

  it("to Anthropic has ids that it takes", async () => {
    const all = requests(1).map((one) => ({ ...one, id: "with a space" }));
    const failed = submitBatch({}, MODELS.anthropic, all, { apiKey: KEY });
    await expect(failed).rejects.toThrow('"with a space" is not one for anthropic');
  });
});

describe("results", () => {
  it("of chat completions are read too", async () => {
    const line = {
      custom_id: "a",
      response: {
        status_code: 200,
        body: {
          choices: [{ index: 0, message: { content: "Hi" }, finish_reason: "stop" }],
          usage: { prompt_tokens: 1, completion_tokens: 1 },
        },
      },
    };
    const fetch = (url: string): Promise<Response> =>
      Promise.resolve(
        url.endsWith("/content")
          ? new Response(JSON.stringify(line))
          : Response.json({ id: "b", status: "completed", output_file_id: "out" }),
      );
    const model = { ...MODELS.openai, api: "openai-completions" };
    for await (const { message } of collectBatch({ fetch }, model, "b", { apiKey: KEY })) {
      expect([textOf(message), message.stopReason]).toEqual(["Hi", "stop"]);
    }
  });

  it("of a batch that OpenAI did not accept are its errors", async () => {
    const errors = { data: [{ code: "invalid_json_line", message: "No JSON", line: 3 }] };
    const fetch = (): Promise<Response> =>
      Promise.resolve(Response.json({ id: "b", status: "failed", errors }));
    const collecting = collectBatch({ fetch }, MODELS.openai, "b", { apiKey: KEY }).next();
    await expect(collecting).rejects.toThrow('The batch "b" failed: No JSON (request 3)');
  });

  it("that never become whole end with an error, after those that came", async () => {
    const clock = manualClock();
    const cuts = Array.from({ length: 50 }, () => ({ bytes: 700, isClean: true }));
    const fake = fakeBatches("anthropic", { outcomes: MIXED, cuts });
    const { id } = await submitBatch({ fetch: fake.fetch }, MODELS.anthropic, requests(7), {
      apiKey: KEY,
    });
    const got: string[] = [];
    const collecting = (async () => {
      const options = { apiKey: KEY, clock };
      const config = { fetch: fake.fetch };
      for await (const result of collectBatch(config, MODELS.anthropic, id, options)) {
        got.push(result.id);
      }
    })();
    const failed = collecting.catch((error: unknown) => error);
    await clock.advance(600_000);
    expect(await failed).toMatchObject({ kind: "incomplete" });
    expect(got).toEqual(["item-0"]);
  });

  it("that a service counts and does not have are an error", async () => {
    const bodies = {
      openai: { id: "b", status: "completed", request_counts: { total: 2, completed: 2 } },
      google: {
        ...{ name: "batches/1", done: true, response: {} },
        metadata: { state: "BATCH_STATE_SUCCEEDED", batchStats: { requestCount: "2" } },
      },
    };
    for (const kind of ["openai", "google"] as const) {
      const fetch = (): Promise<Response> => Promise.resolve(Response.json(bodies[kind]));
      const collecting = collectBatch({ fetch }, MODELS[kind], "batches/1", { apiKey: KEY }).next();
      await expect(collecting).rejects.toMatchObject({ kind: "incomplete" });
      await expect(collecting).rejects.toThrow(/2 results/);
    }
  });

  it("of Google are read from a file where they are too many for the batch", async () => {
    const urls: string[] = [];
    const response = {
      candidates: [{ content: { parts: [{ text: "Hi" }] }, finishReason: "STOP" }],
    };
    const lines = [
      { key: "a", response },
      { metadata: { key: "b" }, error: { code: 3, message: "It is wrong" } },
    ];
    const answer = (responsesFile: string) => ({
      ...{ name: "batches/1", done: true, response: { responsesFile } },
      metadata: { state: "BATCH_STATE_SUCCEEDED", batchStats: { requestCount: "2" } },
    });
    let file = "files/batch-1";
    const fetch = (url: string): Promise<Response> => {
      urls.push(url);
      const isFile = url.includes(":download");
      return Promise.resolve(
        isFile
          ? new Response(lines.map((line) => JSON.stringify(line)).join("\n"))
          : Response.json(answer(file)),
      );
    };
    const got: unknown[] = [];
    const options = { apiKey: KEY };
    for await (const { id, message } of collectBatch({ fetch }, MODELS.google, "b/1", options)) {
      got.push([id, textOf(message), message.stopReason]);
    }
    expect(got).toEqual([
      ["a", "Hi", "stop"],
      ["b", "", "error"],
    ]);
    expect(urls.at(-1)).toBe("https://api.example/download/v1/files/batch-1:download?alt=media");
    // It becomes a part of an address, and comes from outside.
    file = "https://other.example/x";
    const failed = collectBatch({ fetch }, MODELS.google, "b/1", options).next();
    await expect(failed).rejects.toMatchObject({ kind: "incomplete" });
    expect(urls.at(-1)).toBe("https://api.example/v1/b/1");
  });

  it("are no longer loaded when their reader stops", async () => {
    const outcome = { type: "text", text: "x".repeat(1_000) } as const;
    const fake = fakeBatches("anthropic", { outcomes: [outcome], piece: 512 });
    const { id } = await submitBatch({ fetch: fake.fetch }, MODELS.anthropic, requests(500), {
      apiKey: KEY,
    });
    const options = { apiKey: KEY };
    for await (const result of collectBatch({ fetch: fake.fetch }, MODELS.anthropic, id, options)) {
      expect(result.id).toBe("item-0");
      break;
    }
  });

  it("are all there for a reader that takes an hour for one of them", async () => {
    const clock = manualClock();
    const texts = ["first", "x".repeat(MAX_QUEUED_CHARS + 1), "third"];
    const outcomes = texts.map((text): Outcome => ({ type: "text", text }));
    const fake = fakeBatches("anthropic", { outcomes, piece: MAX_QUEUED_CHARS / 4 });
    const config = { fetch: fake.fetch };
    const { id } = await submitBatch(config, MODELS.anthropic, requests(3), { apiKey: KEY });
    const results = collectBatch(config, MODELS.anthropic, id, { apiKey: KEY, clock });
    expect(await results.next()).toMatchObject({ value: { id: "item-0" } });
    await clock.advance(60 * 60 * 1_000);
    expect(await results.next()).toMatchObject({ value: { id: "item-1" } });
    expect(await results.next()).toMatchObject({ value: { id: "item-2" } });
    expect(await results.next()).toMatchObject({ done: true });
    expect(fake.sent.filter(({ url }) => url.endsWith("/results"))).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it("wait for a reader that is slower", async () => {
    const control = new AbortController();
    const queue = new LineQueue<number>(control.signal);
    queue.push(1, MAX_QUEUED_CHARS + 1);
    let hasRoom = false;
    const waiting = queue.waitForRoom().then(() => (hasRoom = true));
    await Promise.resolve();
    expect(hasRoom).toBe(false);
    expect(await queue[Symbol.asyncIterator]().next()).toEqual({ done: false, value: 1 });
    await waiting;
    expect(hasRoom).toBe(true);
  });
});

/** Numbers from a seed. */
function createRandom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function randomOutcome(random: (below: number) => number): Outcome {
  const texts = ["", "ä🐦\u2028", '{"a":1}\n', "x".repeat(random(3_000))];
  switch (random(6)) {
    case 0:
      return { type: "canceled" };
    case 1:
      return { type: "expired" };
    case 2:
      return { type: "error", status: ([400, 429, 500] as const)[random(3)] ?? 400 };
    case 3:
      return { type: "call", arguments: { text: texts[random(texts.length)] } };
    default:
      return { type: "text", text: `${texts[random(texts.length)]}.` };
  }
}

it("random batches come whole, each result once, wherever downloads break off", async () => {
  const seed = pickSeed();
  const count = countCases(60, 1_000);
  for (let at = 0; at < count; at++) {
    const random = createRandom(seed + at);
    const kind = KINDS[random(KINDS.length)] ?? "anthropic";
    const size = 1 + random(20);
    const outcomes = Array.from({ length: size }, () => randomOutcome(random));
    const cuts = Array.from({ length: random(4) }, (): Cut => ({
      bytes: random(size * 400),
      isClean: random(2) === 0,
    }));
    const piece = 1 + random(700);
    const fake = fakeBatches(kind, { outcomes, cuts, piece, isTerminated: random(2) === 0 });
    const note = `${kind}, GYRE_SEED=${seed + at}`;
    const { id } = await submitBatch({ fetch: fake.fetch }, MODELS[kind], requests(size), {
      apiKey: KEY,
    });
    const results = await collect(fake, kind, id, { retry: { baseDelayMs: 0 } });
    const expected = outcomes.map((outcome, place) => expectResult(`item-${place}`, outcome));
    expect(results.toSorted(compareIds).map(describeResult), note).toEqual(expected);
  }
});

it("errors are of one class", async () => {
  const failed = checkBatch({}, MODELS.anthropic, "").catch((error: unknown) => error);
  expect(await failed).toBeInstanceOf(ProviderError);
});
