import { findProvider } from "@pydantic/genai-prices";
import type OpenAI from "openai";
import type { EmbedRequest, EmbedResponse } from "ollama";
import { describe, expect, it } from "vitest";
import type { Model } from "../messages/messages.ts";
import { ProviderError } from "../providers/errors/provider-error.ts";
import type { Fetch, FetchRequest } from "../providers/http/fetch.ts";
import { OptionError } from "../providers/options/apply.ts";
import { SERVICES } from "../providers/services/presets.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { embed, embedMany, EmbedManyError } from "./embed.ts";
import { EMBEDDING_PRICES } from "./prices.ts";

const KEY = "test-key-0123456789";
const BASE = "https://api.example/v1";

function modelAt(provider: string, id: string, more: Partial<Model> = {}): Model {
  const api = SERVICES.find((service) => service.id === provider)?.api ?? "openai-completions";
  return { id, name: id, provider, api, baseUrl: BASE, ...more };
}

interface Sent {
  url: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  signal: AbortSignal;
}

type Answer = (sent: Sent, count: number) => Response | Promise<Response>;

function serve(answer: Answer): { fetch: Fetch; sent: Sent[] } {
  const sent: Sent[] = [];
  return {
    sent,
    fetch: async (url: string, { body = "", headers, signal }: FetchRequest) => {
      const request = { url, headers, body: JSON.parse(body) as Record<string, unknown>, signal };
      sent.push(request);
      return answer(request, sent.length);
    },
  };
}

/** The vector of a text says which text it is of. */
function makeVector(text: unknown): number[] {
  return [Number(/\d+/.exec(String(text))?.[0] ?? -1), 0.5];
}

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `text ${at}`);
}

/** The texts of a request, in whatever form. */
function listInputs(body: Record<string, unknown>): unknown[] {
  return [body["input"] ?? body["requests"] ?? body["instances"] ?? body["texts"]].flat();
}

function openAiAnswer({ body }: Sent): Response {
  const data = [body["input"]]
    .flat()
    .map((text, index) => ({ index, object: "embedding" as const, embedding: makeVector(text) }));
  const answer: OpenAI.CreateEmbeddingResponse = {
    ...{ object: "list", model: "m", data: data.toReversed() },
    usage: { prompt_tokens: 1_000_000, total_tokens: 1_000_000 },
  };
  return Response.json(answer);
}

const OPENAI = modelAt("openai", "text-embedding-3-small");

describe("one text", () => {
  it("has a vector, its tokens and their price", async () => {
    const service = serve(openAiAnswer);
    const made = await embed({ fetch: service.fetch }, OPENAI, "text 7", {
      apiKey: KEY,
      dimensions: 2,
    });
    expect(made).toEqual({
      embedding: [7, 0.5],
      usage: { input: 1_000_000, totalTokens: 1_000_000, cost: { input: 0.02, total: 0.02 } },
    });
    const body: OpenAI.EmbeddingCreateParams = {
      model: "text-embedding-3-small",
      input: ["text 7"],
      encoding_format: "float",
      dimensions: 2,
    };
    expect(service.sent).toMatchObject([
      { url: `${BASE}/embeddings`, headers: { authorization: `Bearer ${KEY}` }, body },
    ]);
  });

  it("goes to Google as a list of one", async () => {
    const service = serve(() =>
      Response.json({ embeddings: [{ values: [1, 2] }], usageMetadata: { promptTokenCount: 3 } }),
    );
    const model = modelAt("google", "gemini-embedding-001");
    const options = { apiKey: KEY, purpose: "query", dimensions: 768 } as const;
    const { embedding, usage } = await embed({ fetch: service.fetch }, model, "Hi", options);
    expect([embedding, usage.input]).toEqual([[1, 2], 3]);
    expect(service.sent).toMatchObject([
      {
        url: `${BASE}/models/gemini-embedding-001:batchEmbedContents`,
        headers: { "x-goog-api-key": KEY },
        body: {
          requests: [
            {
              model: "models/gemini-embedding-001",
              content: { parts: [{ text: "Hi" }] },
              taskType: "RETRIEVAL_QUERY",
              outputDimensionality: 768,
            },
          ],
        },
      },
    ]);
  });

  it("goes to Vertex AI, which says the tokens of each", async () => {
    const service = serve(() =>
      Response.json({
        predictions: [{ embeddings: { values: [1], statistics: { token_count: 4 } } }],
      }),
    );
    const model = modelAt("google-vertex", "text-embedding-005");
    const options = { apiKey: "ya29.token-0123456789", purpose: "document" } as const;
    const { usage } = await embed({ fetch: service.fetch }, model, "Hi", options);
    expect(usage).toEqual({ input: 4, totalTokens: 4 });
    expect(service.sent).toMatchObject([
      {
        url: `${BASE}/models/text-embedding-005:predict`,
        headers: { authorization: "Bearer ya29.token-0123456789" },
        body: {
          instances: [{ content: "Hi", task_type: "RETRIEVAL_DOCUMENT" }],
          parameters: { autoTruncate: false },
        },
      },
    ]);
  });

  it("goes to Vertex AI by an operation of its own for newer models", async () => {
    const service = serve(() =>
      Response.json({
        embedding: { values: [1, 2] },
        usageMetadata: { promptTokenCount: 5 },
        truncated: false,
      }),
    );
    const model = modelAt("google-vertex", "gemini-embedding-2");
    const options = { apiKey: "ya29.token-0123456789", purpose: "query", dimensions: 2 } as const;
    const { embedding, usage } = await embed({ fetch: service.fetch }, model, "Hi", options);
    expect([embedding, usage.input]).toEqual([[1, 2], 5]);
    expect(service.sent).toMatchObject([
      {
        url: `${BASE}/models/gemini-embedding-2:embedContent`,
        body: {
          content: { parts: [{ text: "Hi" }] },
          embedContentConfig: {
            ...{ autoTruncate: false, taskType: "RETRIEVAL_QUERY", outputDimensionality: 2 },
          },
        },
      },
    ]);
  });

  it("goes to no model of Bedrock whose form is not known", async () => {
    const service = serve(() => Response.json({}));
    const model = modelAt("amazon-bedrock", "amazon.nova-2-multimodal-embeddings-v1:0");
    const failed = embed({ fetch: service.fetch }, model, "Hi", { apiKey: KEY });
    await expect(failed).rejects.toMatchObject({ kind: "bad_request", retryable: false });
    expect(service.sent).toEqual([]);
  });

  it("goes to Titan on Bedrock, signed", async () => {
    const service = serve(() => Response.json({ embedding: [1], inputTextTokenCount: 2 }));
    const model = modelAt("amazon-bedrock", "amazon.titan-embed-text-v2:0", {
      baseUrl: "https://bedrock-runtime.us-east-1.amazonaws.com",
    });
    const apiKey = "AKIAIOSFODNN7EXAMPLE:secret-0123456789";
    await embed({ fetch: service.fetch }, model, "Hi", { apiKey, dimensions: 256 });
    expect(service.sent[0]?.url).toMatch(/\/model\/amazon\.titan-embed-text-v2%3A0\/invoke$/);
    expect(service.sent[0]?.headers["authorization"]).toMatch(/^AWS4-HMAC-SHA256 /);
    expect(service.sent[0]?.body).toEqual({ inputText: "Hi", dimensions: 256 });
  });

  it("goes to Cohere on Bedrock with what it is for", async () => {
    const service = serve(() => Response.json({ embeddings: { float: [[1, 2]] } }));
    const model = modelAt("amazon-bedrock", "us.cohere.embed-v4:0", {
      baseUrl: "https://bedrock-runtime.us-east-1.amazonaws.com",
    });
    const { embedding, usage } = await embed({ fetch: service.fetch }, model, "Hi", {
      apiKey: KEY,
    });
    expect([embedding, usage]).toEqual([[1, 2], {}]);
    expect(service.sent[0]?.body).toEqual({
      texts: ["Hi"],
      input_type: "search_document",
      embedding_types: ["float"],
    });
  });

  it("goes to Ollama, which truncates nothing", async () => {
    const answer: Partial<EmbedResponse> = { embeddings: [[1]], prompt_eval_count: 2 };
    const service = serve(() => Response.json(answer));
    const model = modelAt("ollama", "nomic-embed-text", { baseUrl: "http://127.0.0.1:11434" });
    await embed({ fetch: service.fetch }, model, "Hi");
    const body: EmbedRequest = { model: "nomic-embed-text", input: ["Hi"], truncate: false };
    expect(service.sent).toMatchObject([{ url: "http://127.0.0.1:11434/api/embed", body }]);
  });

  it("goes to Mistral, Azure and servers of one's own in OpenAI's way", async () => {
    const service = serve(openAiAnswer);
    const config = { fetch: service.fetch };
    await embed(config, modelAt("mistral", "codestral-embed"), "t 1", {
      apiKey: KEY,
      dimensions: 9,
    });
    await embed(config, modelAt("azure-openai-responses", "mine"), "t 1", { apiKey: KEY });
    await embed(config, modelAt("my-server", "bge-m3"), "t 1");
    expect(service.sent.map(({ body, headers }) => [body, headers["api-key"]])).toEqual([
      [{ model: "codestral-embed", input: ["t 1"], output_dimension: 9 }, undefined],
      [{ model: "mine", input: ["t 1"], encoding_format: "float" }, KEY],
      [{ model: "bge-m3", input: ["t 1"], encoding_format: "float" }, undefined],
    ]);
  });
});

describe("many texts", () => {
  it.each([
    [OPENAI, 5_000, [2_048, 2_048, 904]],
    [modelAt("google", "gemini-embedding-001"), 250, [100, 100, 50]],
    [modelAt("google-vertex", "gemini-embedding-001"), 3, [1, 1, 1]],
    [modelAt("amazon-bedrock", "cohere.embed-english-v3"), 100, [96, 4]],
    [modelAt("mistral", "mistral-embed"), 300, [256, 44]],
  ] as const)("are split by the limits of $provider", async (model, count, sizes) => {
    const at = { ...model, baseUrl: "https://bedrock-runtime.us-east-1.amazonaws.com" };
    const service = serve(({ body }) => {
      const values = listInputs(body).map((one) => [
        Number(/text (\d+)/.exec(JSON.stringify(one))?.[1]),
      ]);
      return Response.json({
        data: values.map((embedding) => ({ embedding })),
        embeddings: body["texts"] ? { float: values } : values.map((one) => ({ values: one })),
        predictions: values.map((one) => ({ embeddings: { values: one } })),
      });
    });
    const config = { fetch: service.fetch };
    const { embeddings } = await embedMany(config, at, texts(count), { apiKey: KEY });
    expect(embeddings.map(([number]) => number)).toEqual(texts(count).map((_, number) => number));
    const sent = service.sent.map(({ body }) => listInputs(body).length);
    expect(sent.toSorted((a, b) => b - a)).toEqual(sizes);
  });

  it("are split by their tokens too", async () => {
    const service = serve(openAiAnswer);
    const long = texts(30).map((text) => `${text} ${"word ".repeat(2_000)}`);
    const model = modelAt("mistral", "mistral-embed");
    await embedMany({ fetch: service.fetch }, model, long, { apiKey: KEY });
    expect(service.sent.length).toBeGreaterThan(5);
  });

  it("keep their order, a few requests at once", async () => {
    let running = 0;
    let most = 0;
    const service = serve(async (sent, count) => {
      most = Math.max(most, ++running);
      // Later ones are quicker.
      for (let turns = 30 - count; turns > 0; turns--) {
        await new Promise((resolve) => void setImmediate(resolve));
      }
      running--;
      return openAiAnswer(sent);
    });
    const model = modelAt("my-server", "bge");
    const { embeddings, usage } = await embedMany({ fetch: service.fetch }, model, texts(900), {
      maxParallel: 3,
    });
    expect(embeddings.map(([number]) => number)).toEqual(texts(900).map((_, number) => number));
    expect([most, service.sent.length, usage.input]).toEqual([3, 10, 10_000_000]);
  });

  it("fail with the texts of the request that failed, and abort the others", async () => {
    const service = serve((sent) => {
      if (!String([sent.body["input"]].flat()[0]).endsWith("text 96")) {
        return new Promise((_, reject) =>
          sent.signal.addEventListener("abort", () => reject(new Error("aborted"))),
        );
      }
      return Response.json({ error: { message: "Bad input" } }, { status: 400 });
    });
    const failed = embedMany({ fetch: service.fetch }, modelAt("my-server", "bge"), texts(900));
    const error = await failed.catch((reason: unknown) => reason);
    if (!(error instanceof EmbedManyError)) throw error;
    expect(error).toMatchObject({ from: 96, to: 192, kind: "bad_request", status: 400 });
    expect(error.message).toMatch(/^The texts 96 to 191 of 900 .*Bad input/);
    expect(service.sent).toHaveLength(4);
    expect(service.sent.every(({ signal }) => signal.aborted)).toBe(true);
  });

  it("are sent in halves where they are too long together", async () => {
    const service = serve((sent) =>
      [sent.body["input"]].flat().length > 2
        ? Response.json(
            { error: { code: "context_length_exceeded", message: "maximum context length" } },
            { status: 400 },
          )
        : openAiAnswer(sent),
    );
    const { embeddings } = await embedMany({ fetch: service.fetch }, OPENAI, texts(7), {
      apiKey: KEY,
    });
    expect(embeddings.map(([number]) => number)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it("may be none", async () => {
    const service = serve(openAiAnswer);
    expect(await embedMany({ fetch: service.fetch }, OPENAI, [])).toEqual({
      embeddings: [],
      usage: {},
    });
    expect(service.sent).toEqual([]);
  });

  it("are stopped by the caller", async () => {
    const control = new AbortController();
    const service = serve(() => {
      control.abort();
      return new Promise(() => {});
    });
    const { signal } = control;
    const aborted = embedMany({ fetch: service.fetch }, OPENAI, texts(3), { apiKey: KEY, signal });
    await expect(aborted).rejects.toMatchObject({ kind: "aborted" });
  });
});

describe("failures are those of conversations", () => {
  it("an overloaded service is asked again, after the wait that it asks for", async () => {
    const clock = manualClock();
    const service = serve((sent, count) =>
      count < 3
        ? new Response("{}", { status: 503, headers: { "retry-after": "2" } })
        : openAiAnswer(sent),
    );
    const made = embed({ fetch: service.fetch }, OPENAI, "text 1", { apiKey: KEY, clock });
    await clock.advance(1_999);
    expect(service.sent).toHaveLength(1);
    await clock.advance(2_001);
    expect((await made).embedding).toEqual([1, 0.5]);
    expect(service.sent).toHaveLength(3);
  });

  it("a key that is wrong is not tried again, and not shown", async () => {
    const service = serve(() =>
      Response.json({ error: { message: `Incorrect API key provided: ${KEY}` } }, { status: 401 }),
    );
    const failed = embed({ fetch: service.fetch }, OPENAI, "Hi", { apiKey: KEY });
    const error = await failed.catch((reason: unknown) => reason);
    expect(error).toMatchObject({ kind: "auth", status: 401, retryable: false });
    expect(String(error)).not.toContain(KEY);
    expect(service.sent).toHaveLength(1);
  });

  it("a key that is missing is named", async () => {
    await expect(embed({}, OPENAI, "Hi")).rejects.toThrow(/OPENAI_API_KEY/);
  });

  it.each([
    ["too few", { data: [] }],
    ["no numbers", { data: [{ embedding: ["a"] }] }],
    ["none at all", { object: "list" }],
    ["at another place", { data: [{ index: 3, embedding: [1] }] }],
  ])("an answer with %s is incomplete", async (_, body) => {
    const service = serve(() => Response.json(body));
    const failed = embed({ fetch: service.fetch }, OPENAI, "Hi", {
      apiKey: KEY,
      retry: { maxRetries: 0 },
    });
    await expect(failed).rejects.toMatchObject({ kind: "incomplete", retryable: true });
  });

  it.each(["{", "<html></html>", "", "null"])("an answer that is %j is an error", async (body) => {
    const service = serve(() => new Response(body));
    const failed = embed({ fetch: service.fetch }, OPENAI, "Hi", {
      apiKey: KEY,
      retry: { maxRetries: 0 },
    });
    await expect(failed).rejects.toBeInstanceOf(ProviderError);
  });
});

describe("before any request", () => {
  const service = serve(() => {
    throw new Error("It was asked.");
  });

  it.each(["anthropic", "groq", "deepseek", "google-vertex-anthropic"])(
    "%s is known to have none",
    async (provider) => {
      const failed = embed({ fetch: service.fetch }, modelAt(provider, "m"), "Hi", { apiKey: KEY });
      await expect(failed).rejects.toMatchObject({ kind: "bad_request" });
      await expect(failed).rejects.toThrow(`"${provider}" has no vectors`);
    },
  );

  it.each([
    [OPENAI, { purpose: "query" }, "purpose"],
    [modelAt("openai", "text-embedding-ada-002"), { dimensions: 5 }, "dimensions"],
    [OPENAI, { dimensions: 1.5 }, "dimensions"],
    [modelAt("amazon-bedrock", "cohere.embed-english-v3"), { purpose: "similarity" }, "purpose"],
  ] as const)("an option that there is not is named", async ({ ...model }, options, option) => {
    const failed = embed({ fetch: service.fetch }, model, "Hi", { apiKey: KEY, ...options });
    const error = await failed.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(OptionError);
    expect(error).toMatchObject({ option });
  });

  it("a text that is empty is named", async () => {
    const failed = embedMany({ fetch: service.fetch }, OPENAI, ["a", " "], { apiKey: KEY });
    await expect(failed).rejects.toThrow("Text 1 of 2 (counted from 0) is empty");
  });
});

it("prices are those of the catalog's source, where it has them", () => {
  const providers: Readonly<Record<string, string>> = {
    openai: "openai",
    google: "google",
    mistral: "mistral",
    "amazon-bedrock": "aws",
  };
  let known = 0;
  for (const [name, price] of Object.entries(EMBEDDING_PRICES)) {
    const [service = "", id = ""] = name.split("/");
    const found = findProvider({ providerId: providers[service] ?? "none" });
    const model = found?.models.find((one) => one.id === id);
    if (!model || Array.isArray(model.prices)) continue;
    known++;
    expect([name, model.prices["input_mtok"]]).toEqual([name, price]);
  }
  expect(known).toBeGreaterThan(2);
});
