import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { submitBatch } from "../../batch/index.ts";
import type { StreamOptions } from "../../client/client.ts";
import { systemClock } from "../../common/clock.ts";
import { embed } from "../../embeddings/index.ts";
import { generateImage } from "../../images/index.ts";
import type { Model, Tool } from "../../messages/messages.ts";
import { createAccounts } from "../../node/accounts/accounts.ts";
import { createModelClient } from "../../node/client.ts";
import { MissingKeyError } from "../../node/keys/keys.ts";
import { createPrompt, fakeService, type SentRequest } from "../../testing/fake-service.ts";
import { ProviderError } from "../errors/provider-error.ts";
import type { Fetch } from "../http/fetch.ts";
import { SERVICES } from "../services/presets.ts";
import { createModel } from "./format-fixture.ts";
import { findFormat } from "./formats.ts";

const KEY = "test-key-0123456789";

/** Of each service a model that has what the service has; models for other things than conversations. */
const MODELS: Readonly<Record<string, { chat?: string; embedding?: string; image?: string }>> = {
  anthropic: { chat: "claude-sonnet-4-5" },
  openai: { chat: "gpt-5.1", embedding: "text-embedding-3-small", image: "gpt-image-1" },
  "azure-openai": { chat: "gpt-5.1" },
  "azure-openai-responses": { chat: "gpt-5.1" },
  google: {
    chat: "gemini-2.5-flash",
    embedding: "gemini-embedding-001",
    image: "gemini-3.1-flash-image",
  },
  "google-vertex": {
    chat: "gemini-2.5-flash",
    embedding: "text-embedding-005",
    image: "gemini-3.1-flash-image",
  },
  "google-vertex-anthropic": { chat: "claude-sonnet-4-5" },
  "amazon-bedrock": {
    chat: "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    embedding: "amazon.titan-embed-text-v2:0",
  },
  openrouter: { chat: "anthropic/claude-sonnet-4.5" },
  xai: { chat: "grok-3-mini" },
  mistral: { embedding: "mistral-embed" },
};

/** Services with a second format that has more. */
const OTHER_FORMATS: Readonly<Partial<Record<string, string>>> = { xai: "openai-responses" };

function modelAt(service: string, kind: "chat" | "embedding" | "image"): Model {
  const { api = "" } = SERVICES.find(({ id }) => id === service) ?? {};
  const id = MODELS[service]?.[kind] ?? "model-1";
  return createModel(api, service, id, { baseUrl: "https://api.example/v1" });
}

const TOOL: Tool = { name: "look", description: "Looks", parameters: { type: "object" } };

interface Asked {
  request: SentRequest | undefined;
  error: string;
}

async function ask(model: Model, options: StreamOptions, tools: Tool[] = []): Promise<Asked> {
  const service = fakeService({ status: 400, body: "{}" });
  const { stream } = findFormat(model.api).create({ fetch: service.fetch });
  const context = { systemPrompt: "Be brief.", messages: [createPrompt("Hello")], tools };
  const answer = await stream(model, context, { apiKey: KEY, sessionId: "s-1", ...options });
  const { errorMessage = "", failure } = await answer.result();
  const request = service.requests.at(-1);
  if (!request) expect(failure?.kind).toBe("bad_request");
  return { request, error: errorMessage };
}

function sameRequest(one: SentRequest | undefined, other: SentRequest | undefined): boolean {
  const show = (sent: SentRequest | undefined): string =>
    JSON.stringify([sent?.body, sent?.headers]);
  return show(one) === show(other);
}

/**
 * One column of the table. `has` looks whether a service has it. Where it has not, it has seen what is
 * said of it: an error before any request, or a request that is the same as without it.
 */
interface Feature {
  name: string;
  has(service: string): Promise<boolean>;
}

/** A feature that is asked for by an option, which is an error where it is not known. */
function byOption(name: string, options: StreamOptions): Feature {
  const [option = ""] = Object.keys(options);
  return {
    name,
    async has(service) {
      const model = modelAt(service, "chat");
      for (const api of new Set([model.api, OTHER_FORMATS[service] ?? model.api])) {
        const at = { ...model, api };
        const { error, request } = await ask(at, options);
        if (request) {
          expect(sameRequest(request, (await ask(at, {})).request), service).toBe(false);
          return true;
        }
        expect(error, service).toContain(option);
      }
      return false;
    },
  };
}

/** A feature that requests go without where a service has no setting for it. */
function bySetting(name: string, on: StreamOptions, off: StreamOptions): Feature {
  return {
    name,
    async has(service) {
      const model = modelAt(service, "chat");
      const [one, other] = [await ask(model, on), await ask(model, off)];
      expect([one.request, other.request], service).not.toContain(undefined);
      return !sameRequest(one.request, other.request);
    },
  };
}

/** A function of its own, that rejects before any request where a service does not have it. */
function byCall(
  name: string,
  call: (config: { fetch: Fetch }, service: string) => Promise<unknown>,
): Feature {
  return {
    name,
    async has(service) {
      let asked = 0;
      const refuse: Fetch = () => {
        asked++;
        return Promise.resolve(new Response("{}", { status: 400 }));
      };
      const error = await call({ fetch: refuse }, service).catch((reason: unknown) => reason);
      if (!(error instanceof ProviderError)) throw error;
      if (asked > 0) return true;
      expect(error, service).toMatchObject({ kind: "bad_request", retryable: false });
      expect(error.message).toContain(`"${service}"`);
      return false;
    },
  };
}

const SCHEMA = { type: "object", properties: { at: { type: "string" } } } as const;
const OPTIONS = { apiKey: KEY };

const FEATURES: readonly Feature[] = [
  {
    name: "tools",
    async has(service) {
      const { error, request } = await ask(modelAt(service, "chat"), {}, [TOOL]);
      if (request) return JSON.stringify(request.body).includes('"look"');
      expect(error).toContain("tool");
      return false;
    },
  },
  bySetting("thinking", { thinkingLevel: "high" }, { thinkingLevel: "off" }),
  bySetting("caching", { cacheRetention: "short" }, { cacheRetention: "none" }),
  byOption("structured output", { outputFormat: { schema: SCHEMA } }),
  byOption("web search", { serviceTools: [{ type: "webSearch" }] }),
  byCall("embeddings", (config, service) =>
    embed(config, modelAt(service, "embedding"), "Hi", OPTIONS),
  ),
  byCall("images", (config, service) =>
    generateImage(config, modelAt(service, "image"), "A tern", OPTIONS),
  ),
  byCall("batch", (config, service) =>
    submitBatch(
      config,
      modelAt(service, "chat"),
      [{ id: "a", context: { messages: [{ role: "user", content: "Hi" }] } }],
      OPTIONS,
    ),
  ),
  {
    name: "accounts",
    async has(service) {
      const never = (): Promise<never> => Promise.reject(new Error("It was asked."));
      const account = createAccounts({ env: {}, clock: systemClock, fetch: never })({
        id: service,
      });
      if (account) return true;
      // Without a key it says which variables it looked at.
      const preset = SERVICES.find(({ id }) => id === service);
      if (preset?.keyless) return false;
      const keys = {
        get: () => Promise.reject(new MissingKeyError({ name: service }, [])),
      };
      const client = createModelClient({ env: {}, keys, fetch: never });
      const stream = await client.stream(
        modelAt(service, "chat"),
        { messages: [createPrompt("Hi")] },
        {},
      );
      expect((await stream.result()).failure?.kind).toBe("auth");
      return false;
    },
  },
];

const PAGE = new URL("../../../../../docs/providers.md", import.meta.url);
const START = "<!-- features: written by features.test.ts -->\n";
const END = "<!-- end of features -->";

describe("the table of features", () => {
  it("is what each service was seen to do, and to refuse", async () => {
    const lines = [
      `| service | ${FEATURES.map(({ name }) => name).join(" | ")} |`,
      `|---|${FEATURES.map(() => "---|").join("")}`,
    ];
    for (const { id } of SERVICES) {
      const cells: string[] = [];
      for (const feature of FEATURES) cells.push((await feature.has(id)) ? "✓" : "");
      lines.push(`| \`${id}\` | ${cells.join(" | ")} |`);
    }
    const table = `${lines.join("\n")}\n`;
    const page = readFileSync(PAGE, "utf8");
    const [before = "", rest = ""] = page.split(START);
    const [written = "", after = ""] = rest.split(END);
    if (process.env["WRITE_DOCS"]) writeFileSync(PAGE, before + START + table + END + after);
    else expect(written).toBe(table);
  });
});
