import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { complete } from "../client/client.ts";
import type { AssistantMessage, Model } from "../messages/messages.ts";
import { findService } from "../providers/services/presets.ts";
import { fakeService, type SentRequest, sse, createPrompt } from "../testing/fake-service.ts";
import { createModelClient, type ModelClientOptions } from "./client.ts";
import { createKeyStore } from "./keys/keys.ts";

type Env = NonNullable<ModelClientOptions["env"]>;

const HOME = mkdtempSync(join(tmpdir(), "gyre-client-"));
afterAll(() => rmSync(HOME, { recursive: true, force: true }));
/** A machine with nothing on it, and a key file of its own. */
const BARE: Env = { XDG_CONFIG_HOME: HOME, HOME };

function modelAt(provider: string, more: Partial<Model> = {}): Model {
  return { id: "m1", name: "One", api: findService(provider)?.api ?? "", provider, ...more };
}

// A server on this machine that speaks as OpenAI's chat does.

const CHAT = sse(
  { id: "c1", choices: [{ index: 0, delta: { content: "Hello" }, finish_reason: "stop" }] },
  "[DONE]",
);
let server: Server;
let url: string;
let seen: { path: string | undefined; headers: IncomingHttpHeaders }[] = [];
beforeAll(async () => {
  server = createServer((request, response) => {
    seen.push({ path: request.url, headers: request.headers });
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(CHAT);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
beforeEach(() => {
  seen = [];
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function ask(model: Model, options: ModelClientOptions): Promise<AssistantMessage> {
  return complete(createModelClient(options), model, { messages: [createPrompt("Hi")] });
}

/** The request that would be sent, to services that are not on this machine. */
async function requestTo(model: Model, env: Env): Promise<SentRequest> {
  const service = fakeService({ status: 400, body: "{}" });
  await ask(model, { env: { ...BARE, ...env }, fetch: service.fetch });
  const [request] = service.requests;
  if (!request) throw new Error("Nothing was sent.");
  return request;
}

describe("keys", () => {
  const groq = (): Model => modelAt("groq", { baseUrl: url });

  it("come from the environment", async () => {
    const message = await ask(groq(), { env: { ...BARE, GROQ_API_KEY: "key-of-env" } });
    expect(message).toMatchObject({ stopReason: "stop", content: [{ text: "Hello" }] });
    expect(seen).toMatchObject([
      { path: "/chat/completions", headers: { authorization: "Bearer key-of-env" } },
    ]);
  });

  it("come from the key file of the user, as it is at the time", async () => {
    const client = createModelClient({ env: BARE });
    const keys = createKeyStore({ env: BARE });
    for (const key of ["key-of-file-1", "key-of-file-2"]) {
      await keys.set("groq", key);
      await complete(client, groq(), { messages: [createPrompt("Hi")] });
    }
    await keys.remove("groq");
    expect(seen.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer key-of-file-1",
      "Bearer key-of-file-2",
    ]);
  });

  it("of the request go before all others", async () => {
    const client = createModelClient({ env: { ...BARE, GROQ_API_KEY: "key-of-env" } });
    await complete(
      client,
      groq(),
      { messages: [createPrompt("Hi")] },
      { apiKey: "key-of-request" },
    );
    expect(seen[0]?.headers.authorization).toBe("Bearer key-of-request");
  });

  it("may come from a store of one's own", async () => {
    const asked: string[] = [];
    const keys: ModelClientOptions["keys"] = {
      get: ({ id }) => {
        asked.push(id);
        return Promise.resolve("key-of-store");
      },
    };
    await ask(groq(), { env: { ...BARE, GROQ_API_KEY: "key-of-env" }, keys });
    expect(asked).toEqual(["groq"]);
    expect(seen[0]?.headers.authorization).toBe("Bearer key-of-store");
  });

  it("that are nowhere are reported, with all the places", async () => {
    const message = await ask(groq(), { env: BARE });
    expect(message.failure).toEqual({ kind: "auth", retryable: false });
    expect(message.errorMessage).toContain("There is no key for Groq");
    expect(message.errorMessage).toContain("GROQ_API_KEY");
    expect(message.errorMessage).toContain(join(HOME, "gyre", "keys.json"));
    expect(seen).toEqual([]);
  });

  it("are not needed by a server of one's own", async () => {
    const message = await ask(modelAt("vllm", { baseUrl: url }), { env: BARE });
    expect(message.stopReason).toBe("stop");
    expect(seen[0]?.headers).not.toHaveProperty("authorization");
  });
});

describe("Amazon's keys", () => {
  const model = modelAt("amazon-bedrock");
  const PAIR: Env = {
    AWS_ACCESS_KEY_ID: "AKIATESTTESTTEST0000",
    AWS_SECRET_ACCESS_KEY: "secret-of-test",
  };

  it("sign in two parts or three", async () => {
    const two = await requestTo(model, PAIR);
    expect(two.headers["authorization"]).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIATESTTESTTEST0000\/\d{8}\/us-east-1\/bedrock\/aws4_request, /,
    );
    expect(two.headers).not.toHaveProperty("x-amz-security-token");
    const three = await requestTo(model, { ...PAIR, AWS_SESSION_TOKEN: "token-of-test" });
    expect(three.headers["x-amz-security-token"]).toBe("token-of-test");
  });

  it("give way to a token of Bedrock's own", async () => {
    const env = { ...PAIR, AWS_BEARER_TOKEN_BEDROCK: "bearer-of-test" };
    const { headers } = await requestTo(model, env);
    expect(headers["authorization"]).toBe("Bearer bearer-of-test");
  });

  it("are of no use by half", async () => {
    const { failure } = await ask(model, {
      env: { ...BARE, AWS_ACCESS_KEY_ID: "AKIATESTTESTTEST0000" },
    });
    expect(failure).toEqual({ kind: "auth", retryable: false });
  });

  it("are for Amazon alone", async () => {
    const { failure } = await ask(modelAt("groq"), { env: { ...BARE, ...PAIR } });
    expect(failure).toEqual({ kind: "auth", retryable: false });
  });
});

describe("addresses", () => {
  it("come from the variable of the service", async () => {
    const env = { ...BARE, GROQ_API_KEY: "key-of-env", GROQ_BASE_URL: `${url}/proxy/` };
    expect((await ask(modelAt("groq"), { env })).stopReason).toBe("stop");
    expect(seen[0]?.path).toBe("/proxy/chat/completions");
  });

  it("of the model go before", async () => {
    const env = { ...BARE, GROQ_API_KEY: "key-of-env", GROQ_BASE_URL: "http://nowhere.invalid" };
    expect((await ask(modelAt("groq", { baseUrl: url }), { env })).stopReason).toBe("stop");
  });

  const key: Env = {
    AWS_BEARER_TOKEN_BEDROCK: "test-key",
    AZURE_OPENAI_API_KEY: "test-key",
    GOOGLE_VERTEX_TOKEN: "ya29.test-key",
    OPENAI_API_KEY: "test-key",
  };
  it.each<[string, Env, string]>([
    ["openai", {}, "https://api.openai.com/v1/"],
    ["openai", { OPENAI_BASE_URL: "https://proxy.example/v1" }, "https://proxy.example/v1/"],
    ["openai", { OPENAI_BASE_URL: "" }, "https://api.openai.com/v1/"],
    ["amazon-bedrock", {}, "https://bedrock-runtime.us-east-1.amazonaws.com/"],
    [
      "amazon-bedrock",
      { AWS_REGION: "eu-west-3", AWS_DEFAULT_REGION: "us-west-2" },
      "https://bedrock-runtime.eu-west-3.amazonaws.com/",
    ],
    [
      "amazon-bedrock",
      { AWS_REGION: "", AWS_DEFAULT_REGION: "us-west-2" },
      "https://bedrock-runtime.us-west-2.amazonaws.com/",
    ],
    ["amazon-bedrock", { AWS_REGION: "" }, "https://bedrock-runtime.us-east-1.amazonaws.com/"],
    [
      "amazon-bedrock",
      { AWS_REGION: "eu-west-3", AWS_ENDPOINT_URL_BEDROCK_RUNTIME: "https://inside.example" },
      "https://inside.example/",
    ],
    [
      "google-vertex",
      { GOOGLE_CLOUD_PROJECT: "p1", GOOGLE_CLOUD_LOCATION: "europe-west4" },
      "https://europe-west4-aiplatform.googleapis.com/v1/projects/p1/locations/europe-west4/publishers/google/",
    ],
    [
      "google-vertex",
      { GOOGLE_CLOUD_PROJECT: "p1", GOOGLE_CLOUD_LOCATION: "global" },
      "https://aiplatform.googleapis.com/v1/projects/p1/locations/global/publishers/google/",
    ],
    [
      "google-vertex",
      { GOOGLE_CLOUD_PROJECT: "p1" },
      "https://aiplatform.googleapis.com/v1/publishers/google/",
    ],
    [
      "azure-openai-responses",
      { AZURE_OPENAI_RESOURCE_NAME: "res1" },
      "https://res1.openai.azure.com/openai/v1/responses",
    ],
    [
      "azure-openai",
      { AZURE_OPENAI_RESOURCE_NAME: "res1" },
      "https://res1.openai.azure.com/openai/v1/chat/completions",
    ],
    [
      "azure-openai",
      { AZURE_OPENAI_RESOURCE_NAME: "res1", AZURE_OPENAI_BASE_URL: "https://az.example/openai/v1" },
      "https://az.example/openai/v1/chat/completions",
    ],
    ["ollama", {}, "http://127.0.0.1:11434/api/chat"],
    ["ollama", { OLLAMA_HOST: "gpu.example:8000" }, "http://gpu.example:8000/api/chat"],
    ["ollama", { OLLAMA_HOST: "https://gpu.example" }, "https://gpu.example/api/chat"],
    ["ollama", { OLLAMA_HOST: "0.0.0.0" }, "http://127.0.0.1:11434/api/chat"],
    ["ollama", { OLLAMA_HOST: ":8000" }, "http://127.0.0.1:8000/api/chat"],
  ])("of %s with %j", async (provider, env, address) => {
    const request = await requestTo(modelAt(provider), { ...key, ...env });
    expect(request.url.startsWith(address)).toBe(true);
  });

  it("that are not known are reported, with the variable to set", async () => {
    const message = await ask(modelAt("azure-openai"), { env: { ...BARE, ...key } });
    expect(message.failure).toEqual({ kind: "bad_request", retryable: false });
    expect(message.errorMessage).toContain("AZURE_OPENAI_BASE_URL");
  });
});
