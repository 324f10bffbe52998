import { describe, expect, it } from "vitest";
import { type AskedService, listServiceModels, ModelListError } from "./service-models.ts";

const KEY = "secret-key-0123456789";

interface Asked {
  url: string;
  headers: Headers;
}

/** A `fetch` that gives these answers one after the other, and keeps what it was asked. */
function answering(...answers: readonly unknown[]): { fetch: typeof fetch; asked: Asked[] } {
  const asked: Asked[] = [];
  const fetch = async (url: unknown, init?: RequestInit): Promise<Response> => {
    const answer = answers[asked.length];
    asked.push({ url: String(url), headers: new Headers(init?.headers) });
    if (answer instanceof Error) throw answer;
    return answer instanceof Response ? answer : Response.json(answer);
  };
  return { fetch, asked };
}

function service(api: string, baseUrl: string, more: Partial<AskedService> = {}): AskedService {
  return { id: "acme", api, baseUrl, apiKey: KEY, ...more };
}
const chat = service("openai-completions", "https://acme.example/v1");

async function catchFailure(asked: AskedService, fetch: typeof globalThis.fetch): Promise<Error> {
  return listServiceModels(asked, { fetch }).then(
    () => {
      throw new Error("It did not fail.");
    },
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  );
}

describe("listServiceModels of services like OpenAI's", () => {
  it("asks {baseUrl}/models with the key, and returns what the list has", async () => {
    const { fetch, asked } = answering({ object: "list", data: [{ id: "m", object: "model" }] });
    expect(await listServiceModels(chat, { fetch })).toEqual([
      { id: "m", name: "m", api: "openai-completions", provider: "acme" },
    ]);
    expect(asked.map(({ url }) => url)).toEqual(["https://acme.example/v1/models"]);
    expect(asked[0]?.headers.get("authorization")).toBe(`Bearer ${KEY}`);
  });

  it("keeps the query of an address, and takes a slash at its end", async () => {
    const { fetch, asked } = answering({ data: [] });
    await listServiceModels(service("openai-responses", "https://a.example/v1/?version=2"), {
      fetch,
    });
    expect(asked[0]?.url).toBe("https://a.example/v1/models?version=2");
  });

  it("sends no key where there is none, and the service's own headers", async () => {
    const { fetch, asked } = answering({ data: [] });
    const headers = { "x-team": "a" };
    await listServiceModels(
      { id: "own", api: chat.api, baseUrl: chat.baseUrl, headers },
      { fetch },
    );
    expect(asked[0]?.headers.has("authorization")).toBe(false);
    expect(asked[0]?.headers.get("x-team")).toBe("a");
  });

  it("sends the key in the way of the service", async () => {
    const { fetch, asked } = answering({ data: [] });
    await listServiceModels({ ...chat, auth: "api-key" }, { fetch });
    expect(asked[0]?.headers.get("api-key")).toBe(KEY);
    expect(asked[0]?.headers.has("authorization")).toBe(false);
  });

  it("reads windows, prices with tiers, images and thinking of OpenRouter", async () => {
    const { fetch } = answering({
      data: [
        {
          id: "lab/m",
          name: "Lab: M",
          context_length: 1_000_000,
          architecture: { input_modalities: ["text", "image"], output_modalities: ["text"] },
          top_provider: { max_completion_tokens: 64_000 },
          supported_parameters: ["tools", "reasoning"],
          pricing: {
            prompt: "0.00000125",
            completion: "0.00001",
            input_cache_read: "0.000000125",
            overrides: [
              { min_prompt_tokens: 200_001, prompt: "0.0000025", completion: "0.000015" },
            ],
          },
        },
        {
          id: "lab/router",
          context_length: null,
          architecture: { input_modalities: ["text"] },
          top_provider: { max_completion_tokens: null },
          supported_parameters: ["tools"],
          pricing: { prompt: "-1", completion: "-1" },
        },
        { id: "lab/free:free", pricing: { prompt: "0", completion: "0" } },
        { id: "lab/draws", architecture: { output_modalities: ["image"] } },
      ],
    });
    const known = { api: "openai-completions", provider: "acme" };
    expect(await listServiceModels(chat, { fetch })).toEqual([
      {
        ...known,
        id: "lab/m",
        name: "Lab: M",
        contextWindow: 1_000_000,
        maxTokens: 64_000,
        input: ["text", "image"],
        reasoning: true,
        price: {
          input: 1.25,
          output: 10,
          cacheRead: 0.125,
          tiers: [{ above: 200_000, input: 2.5, output: 15, cacheRead: 0.125 }],
        },
      },
      { ...known, id: "lab/router", name: "lab/router", input: ["text"], reasoning: false },
      { ...known, id: "lab/free:free", name: "lab/free:free", price: { input: 0, output: 0 } },
    ]);
  });

  it("reads a bare list, prices for a million, and leaves out what writes no text", async () => {
    const { fetch } = answering([
      {
        id: "m",
        type: "chat",
        display_name: "M",
        context_length: 8192,
        pricing: { input: 0.2, output: 0.6 },
      },
      { id: "e", type: "embedding" },
      { id: "i", type: "image" },
    ]);
    expect(await listServiceModels(chat, { fetch })).toEqual([
      {
        id: "m",
        name: "M",
        api: "openai-completions",
        provider: "acme",
        contextWindow: 8192,
        price: { input: 0.2, output: 0.6 },
      },
    ]);
  });

  it.each([
    [
      { context_window: 131_072, max_completion_tokens: 8192 },
      { contextWindow: 131_072, maxTokens: 8192 },
    ],
    [{ max_model_len: 4096 }, { contextWindow: 4096 }],
    [
      { max_context_length: 9, capabilities: { vision: false } },
      { contextWindow: 9, input: ["text"] },
    ],
    [{ meta: { n_ctx: 512 } }, { contextWindow: 512 }],
    [
      { supports_image_in: true, supports_reasoning: true },
      { input: ["text", "image"], reasoning: true },
    ],
  ])("reads %j", async (facts, expected) => {
    const { fetch } = answering({ data: [{ id: "m", ...facts }] });
    expect(await listServiceModels(chat, { fetch })).toEqual([
      { id: "m", name: "m", api: "openai-completions", provider: "acme", ...expected },
    ]);
  });

  it("passes over entries that are no models", async () => {
    const { fetch } = answering({ data: [null, "m", {}, { id: 3 }, { id: "m" }] });
    expect(await listServiceModels(chat, { fetch })).toHaveLength(1);
  });
});

describe("listServiceModels of other services", () => {
  it("reads all pages of Anthropic", async () => {
    const { fetch, asked } = answering(
      {
        data: [
          {
            type: "model",
            id: "a",
            display_name: "A",
            max_input_tokens: 200_000,
            max_tokens: 64_000,
            capabilities: { image_input: { supported: true }, thinking: { supported: false } },
          },
        ],
        has_more: true,
        last_id: "a",
      },
      {
        data: [{ type: "model", id: "b", display_name: "B", max_tokens: null }],
        has_more: false,
        last_id: "b",
      },
    );
    const anthropic = service("anthropic-messages", "https://api.acme.example");
    const known = { api: "anthropic-messages", provider: "acme" };
    expect(await listServiceModels(anthropic, { fetch })).toEqual([
      {
        ...known,
        id: "a",
        name: "A",
        contextWindow: 200_000,
        maxTokens: 64_000,
        input: ["text", "image"],
        reasoning: false,
      },
      { ...known, id: "b", name: "B" },
    ]);
    expect(asked.map(({ url }) => url)).toEqual([
      "https://api.acme.example/v1/models?limit=1000",
      "https://api.acme.example/v1/models?limit=1000&after_id=a",
    ]);
    expect(asked[1]?.headers.get("x-api-key")).toBe(KEY);
    expect(asked[1]?.headers.get("anthropic-version")).toBe("2023-06-01");
  });

  it("reads all pages of Google", async () => {
    const { fetch, asked } = answering(
      {
        models: [
          {
            name: "models/g",
            displayName: "G",
            inputTokenLimit: 1_048_576,
            outputTokenLimit: 65_536,
            supportedGenerationMethods: ["generateContent", "countTokens"],
            thinking: true,
          },
          { name: "models/e", supportedGenerationMethods: ["embedContent"] },
        ],
        nextPageToken: "n/1",
      },
      { models: [{ name: "models/h" }] },
    );
    const google = service("google-generative-ai", "https://acme.example/v1beta");
    const known = { api: "google-generative-ai", provider: "acme" };
    expect(await listServiceModels(google, { fetch })).toEqual([
      {
        ...known,
        id: "g",
        name: "G",
        contextWindow: 1_048_576,
        maxTokens: 65_536,
        reasoning: true,
      },
      { ...known, id: "h", name: "h" },
    ]);
    expect(asked.map(({ url }) => url)).toEqual([
      "https://acme.example/v1beta/models?pageSize=1000",
      "https://acme.example/v1beta/models?pageSize=1000&pageToken=n%2F1",
    ]);
    expect(asked[0]?.headers.get("x-goog-api-key")).toBe(KEY);
  });

  it("reads what Ollama has", async () => {
    const { fetch, asked } = answering({
      models: [
        { name: "a:latest", model: "a:latest", details: { family: "a" } },
        { name: "b:4b", capabilities: ["completion", "vision", "thinking"] },
        { name: "e", capabilities: ["embedding"] },
      ],
    });
    const ollama = { id: "ollama", api: "ollama", baseUrl: "http://127.0.0.1:11434" };
    const known = { api: "ollama", provider: "ollama" };
    expect(await listServiceModels(ollama, { fetch })).toEqual([
      { ...known, id: "a:latest", name: "a:latest" },
      { ...known, id: "b:4b", name: "b:4b", input: ["text", "image"], reasoning: true },
    ]);
    expect(asked[0]?.url).toBe("http://127.0.0.1:11434/api/tags");
  });

  it("stops where a list goes round in a circle", async () => {
    let pages = 0;
    const fetch = async (): Promise<Response> => {
      pages++;
      return Response.json({ data: [], has_more: true, last_id: "a" });
    };
    const error = await catchFailure(service("anthropic-messages", "https://a.example"), fetch);
    expect(error.message).toBe("The list of acme has no end: stopped after 100 pages.");
    expect(pages).toBe(100);
  });
});

describe("listServiceModels that fails", () => {
  it.each([
    [401, { error: "bad key" }, ' answered 401: {"error":"bad key"}. Check the key.'],
    [404, {}, " answered 404: {}. Check the address, or name the models in a file."],
    [429, {}, " answered 429: {}. Try again later."],
    [503, {}, " answered 503: {}. Try again later."],
    [400, {}, " answered 400: {}. Check the service's settings."],
  ])("says that a service answered %i", async (status, body, words) => {
    const { fetch } = answering(Response.json(body, { status }));
    const error = await catchFailure(chat, fetch);
    expect(error).toBeInstanceOf(ModelListError);
    expect(error).toMatchObject({ code: "model_list_failed", status });
    expect(error.message).toBe(
      `The models of acme could not be read: https://acme.example/v1/models${words}`,
    );
  });

  it("cuts long words, and shows no page", async () => {
    const long = await catchFailure(
      chat,
      answering(new Response("x".repeat(5000), { status: 500 })).fetch,
    );
    expect(long.message.length).toBeLessThan(500);
    const page = await catchFailure(chat, answering(new Response("<html>", { status: 502 })).fetch);
    expect(page.message).toContain("answered 502. Try");
  });

  it("says what was no JSON, and what was no list", async () => {
    const text = await catchFailure(chat, answering(new Response("<html>")).fetch);
    expect(text.message).toContain("models answered with what is no JSON. Check the address.");
    for (const answer of [{ ok: true }, 5, null, { data: {} }]) {
      const error = await catchFailure(chat, answering(answer).fetch);
      expect(error.message).toContain("its answer has no list. Check the address.");
    }
  });

  it("does not read an answer without end", async () => {
    const block = new Uint8Array(1024 * 1024).fill(0x20);
    let sent = 0;
    let canceled = false;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent++;
        controller.enqueue(block);
      },
      cancel() {
        canceled = true;
      },
    });
    const error = await catchFailure(chat, answering(new Response(body)).fetch);
    expect(error.message).toContain("answered with more than 33554432 bytes.");
    expect(canceled).toBe(true);
    expect(sent).toBeLessThan(40);
  });

  it("says that a service could not be reached, and why", async () => {
    const cause = new Error("connect ECONNREFUSED 127.0.0.1:9");
    const error = await catchFailure(
      chat,
      answering(new TypeError("fetch failed", { cause })).fetch,
    );
    expect(error.message).toBe(
      "The models of acme could not be read: https://acme.example/v1/models could not be asked (fetch failed: connect ECONNREFUSED 127.0.0.1:9). Check the address and the network.",
    );
  });

  it("says which services can be asked, and what is no address", async () => {
    const { fetch, asked } = answering();
    for (const api of ["bedrock-converse-stream", "toString"]) {
      const error = await catchFailure(service(api, "https://a.example"), fetch);
      expect(error.message).toContain(`the api "${api}" cannot be asked`);
    }
    const error = await catchFailure(service("ollama", "localhost"), fetch);
    expect(error.message).toBe('The models of acme could not be read: "localhost" is no address.');
    expect(asked).toEqual([]);
  });

  it("never shows the key", async () => {
    const echo = (text: string): Response => new Response(text, { status: 401 });
    const answers = [
      echo(`no such key: ${KEY}`),
      echo(
        JSON.stringify({
          error: { message: `Bearer ${KEY} is wrong`, url: `?key=${encodeURIComponent(KEY)}` },
        }),
      ),
      new TypeError(`"Bearer ${KEY}" is an invalid header value`),
      new TypeError("failed", { cause: new Error(KEY) }),
    ];
    for (const answer of answers) {
      const error = await catchFailure(chat, answering(answer).fetch);
      expect(error).toBeInstanceOf(ModelListError);
      expect(
        `${error.message}${error.stack}${JSON.stringify(error)}${String(error.cause)}`,
      ).not.toContain(KEY);
    }
    const headers = { authorization: "Bearer other-secret-99" };
    const { fetch } = answering(echo("other-secret-99"));
    const error = await catchFailure({ ...chat, headers }, fetch);
    expect(error.message).not.toContain("other-secret-99");
  });

  it("never shows a key that a real fetch refuses to send", async () => {
    const error = await catchFailure({ ...chat, apiKey: `${KEY}\n${KEY}` }, globalThis.fetch);
    expect(error).toBeInstanceOf(ModelListError);
    expect(`${error.message}${error.stack}`).not.toContain(KEY);
  });

  it("is aborted with the caller's reason", async () => {
    const reason = new Error("enough");
    const control = new AbortController();
    const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
      control.abort(reason);
      init?.signal?.throwIfAborted();
      return Response.json({ data: [] });
    };
    await expect(listServiceModels(chat, { fetch, signal: control.signal })).rejects.toBe(reason);
  });
});
