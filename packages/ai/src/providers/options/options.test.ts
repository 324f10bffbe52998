import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { StreamOptions } from "../../client/client.ts";
import type { GenerationOptions, ProviderOptions } from "../../client/generation-options.ts";
import type { AssistantMessage, Model, Tool } from "../../messages/messages.ts";
import { createPrompt, fakeService, type SentRequest } from "../../testing/fake-service.ts";
import { createModel } from "../testing/format-fixture.ts";
import { findFormat } from "../testing/formats.ts";
import { requestCheckFor } from "../testing/request-checks.ts";
import { SERVICES } from "../services/presets.ts";
import { COMMON, type CommonOptions, SERVICE_OPTIONS } from "./table.ts";

const VALUES: CommonOptions = {
  topP: 0.5,
  topK: 40,
  minP: 0.1,
  seed: 7,
  stopSequences: ["END"],
  presencePenalty: 0.5,
  frequencyPenalty: 0.25,
  parallelToolCalls: false,
  strictTools: true,
  verbosity: "low",
  userId: "user-1",
  logprobs: 2,
  cacheBreakpoints: [{ after: "system", ttl: "1h" }, { after: 0 }],
  outputFormat: { schema: { type: "object", properties: { at: { type: "string" } } } },
  serviceTools: [{ type: "webSearch" }],
};

const OWN: { [Id in keyof ProviderOptions]-?: Required<NonNullable<ProviderOptions[Id]>> } = {
  anthropic: {
    serviceTier: "standard_only",
    speed: "fast",
    inferenceGeo: "us",
    serviceTools: [{ type: "computer", width: 1024, height: 768 }],
  },
  openai: {
    serviceTier: "flex",
    reasoningSummary: "detailed",
    truncation: "auto",
    store: true,
    previousResponseId: "resp_1",
    conversation: "conv_1",
    background: true,
    serviceTools: [{ type: "computer" }],
    logitBias: { "50256": -100 },
  },
  "azure-openai": {
    serviceTier: "priority",
    reasoningSummary: "concise",
    truncation: "auto",
    store: true,
    previousResponseId: "resp_1",
    conversation: "conv_1",
    background: true,
    serviceTools: [{ type: "computer" }],
    logitBias: { "50256": -100 },
  },
  "azure-openai-responses": {
    serviceTier: "priority",
    reasoningSummary: "concise",
    truncation: "auto",
    store: true,
    previousResponseId: "resp_1",
    conversation: "conv_1",
    background: true,
    serviceTools: [{ type: "computer" }],
    logitBias: { "50256": -100 },
  },
  google: {
    safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_ONLY_HIGH" }],
    cachedContent: "cachedContents/abc",
    serviceTools: [{ type: "googleMaps" }],
  },
  "google-vertex": {
    safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "OFF" }],
    cachedContent: "projects/p/locations/l/cachedContents/abc",
    labels: { team: "birds" },
    serviceTools: [{ type: "googleMaps" }],
  },
  "amazon-bedrock": {
    guardrail: { id: "gr-1", version: "2", trace: "enabled", processing: "async" },
    serviceTier: "flex",
    latency: "optimized",
    requestMetadata: { team: "birds" },
  },
  openrouter: {
    routing: {
      order: ["a"],
      allowFallbacks: false,
      requireParameters: true,
      dataCollection: "deny",
    },
    models: ["openai/gpt-4.1"],
    topA: 0.2,
    repetitionPenalty: 1.1,
  },
  groq: { serviceTier: "flex" },
  xai: { serviceTools: [{ type: "xSearch" }] },
  mistral: { safePrompt: true },
  together: { repetitionPenalty: 1.1 },
  fireworks: { repetitionPenalty: 1.1 },
  vllm: { repetitionPenalty: 1.1 },
  ollama: { repetitionPenalty: 1.1, keepAlive: "10m" },
};

/** Of each service a model that takes all that the service has. */
const MODELS: Readonly<Record<string, Partial<Model>>> = {
  anthropic: { id: "claude-sonnet-4-5" },
  openai: { id: "gpt-4.1" },
  google: { id: "gemini-2.5-flash" },
  "google-vertex": { id: "gemini-2.5-flash" },
  "google-vertex-anthropic": { id: "claude-sonnet-4-5" },
  "amazon-bedrock": { id: "us.anthropic.claude-sonnet-4-5-20250929-v1:0" },
  openrouter: { id: "anthropic/claude-sonnet-4.5" },
  xai: { id: "grok-4-fast-non-reasoning" },
  "github-models": { id: "openai/gpt-4.1" },
  // Its own settings for sampling are fixed in all models of the catalog.
  moonshot: { id: "moonshot-v1-8k", quirks: { temperature: true } },
};

interface Row {
  service: string;
  model: Model;
}

const ROWS: readonly Row[] = [
  ...SERVICES.map(({ id, api }) => createRow(id, api)),
  createRow("openai", "openai-completions"),
  createRow("xai", "openai-responses"),
  createRow("amazon-bedrock", "bedrock-invoke-stream"),
];

function createRow(service: string, api: string): Row {
  const model = createModel(api, service, "model-1", {
    reasoning: false,
    baseUrl: "https://api.example/v1",
    ...MODELS[service],
  });
  return { service, model };
}

const TOOL: Tool = {
  name: "look",
  description: "Looks",
  parameters: {
    type: "object",
    properties: { at: { type: "string", minLength: 1 } },
    required: [],
  },
};

interface Asked {
  message: AssistantMessage;
  request: SentRequest | undefined;
}

async function ask(model: Model, options: StreamOptions, tools = [TOOL]): Promise<Asked> {
  const service = fakeService({ status: 400, body: "{}" });
  const { stream } = findFormat(model.api).create({ fetch: service.fetch });
  const context = { systemPrompt: "Be brief.", messages: [createPrompt("Hello")], tools };
  const apiKey = "test-key-0123456789";
  const answer = await stream(model, context, { apiKey, cacheRetention: "none", ...options });
  return { message: await answer.result(), request: service.requests.at(-1) };
}

/** Whether an option is sent; if not, that the error names it and nothing was sent. */
async function isSent(
  model: Model,
  name: string,
  options: StreamOptions,
  tools = [TOOL],
): Promise<boolean> {
  const { message, request } = await ask(model, options, tools);
  if (!request) {
    expect(message.failure).toEqual({ kind: "bad_request", retryable: false });
    expect(message.errorMessage).toContain(name);
    expect(message.errorMessage).toMatch(/leave it out|Use /i);
    return false;
  }
  const { request: plain } = await ask(model, {}, tools);
  expect(request.body, name).not.toEqual(plain?.body);
  expect(requestCheckFor(model)(request.body, model.id), name).toEqual([]);
  return true;
}

/** Options that some services take in requests without tools, and the mark of one of them. */
const WITHOUT_TOOLS: readonly string[] = ["outputFormat", "serviceTools"];
const markAlone = (name: string): string => `${name} alone`;

/** The names of the options that a row takes: the common ones, and those of the service. */
async function listSent({ model, service }: Row): Promise<{ sent: string[]; own: string[] }> {
  const sent: string[] = [];
  const own: string[] = [];
  for (const [name, value] of Object.entries(VALUES)) {
    const options: GenerationOptions = { [name]: value };
    if (await isSent(model, name, options)) sent.push(name);
    else if (WITHOUT_TOOLS.includes(name) && (await isSent(model, name, options, [])))
      sent.push(markAlone(name));
  }
  for (const [name, value] of Object.entries(findOwn(service))) {
    const providerOptions: ProviderOptions = { [service]: { [name]: value } };
    // A model that does not think has nothing to sum up.
    const at = name === "reasoningSummary" ? { ...model, id: "gpt-5.1", reasoning: true } : model;
    const tools = name === "serviceTools" && service.startsWith("google") ? [] : [TOOL];
    if (await isSent(at, `providerOptions.${service}.${name}`, { providerOptions }, tools))
      own.push(name);
  }
  return { sent, own };
}

function findOwn(service: string): object {
  return Object.entries(OWN).find(([id]) => id === service)?.[1] ?? {};
}

const PAGE = new URL("../../../../../docs/providers.md", import.meta.url);
const START = "<!-- options: written by options.test.ts -->\n";
const END = "<!-- end of options -->";

describe("the table of options", () => {
  it("is what services are sent, and an error that names the option for every empty cell", async () => {
    const names = Object.keys(COMMON);
    const lines = [
      `| service | format | ${names.map((name) => `\`${name}\``).join(" | ")} | of its own |`,
      `|---|---|${names.map(() => "---|").join("")}---|`,
    ];
    for (const row of ROWS) {
      const { sent, own } = await listSent(row);
      const cells = names.map((name) => {
        if (sent.includes(markAlone(name))) return "without tools";
        return sent.includes(name) ? "✓" : "";
      });
      const ofService = own.map((name) => `\`${name}\``).join(", ");
      lines.push(
        `| \`${row.service}\` | \`${row.model.api}\` | ${cells.join(" | ")} | ${ofService} |`,
      );
    }
    const table = `${lines.join("\n")}\n`;
    const page = readFileSync(PAGE, "utf8");
    const [before = "", rest = ""] = page.split(START);
    const [written = "", after = ""] = rest.split(END);
    if (process.env["WRITE_DOCS"]) writeFileSync(PAGE, before + START + table + END + after);
    else expect(written).toBe(table);
  });

  it("has every option of the types, with a service that is sent it", async () => {
    for (const [service, names] of Object.entries(SERVICE_OPTIONS)) {
      const rows = ROWS.filter((row) => row.service === service);
      const sent = new Set((await Promise.all(rows.map(listSent))).flatMap(({ own }) => own));
      for (const name of Object.keys(names)) {
        // The two formats of Azure are two services here.
        const other = service.startsWith("azure") && !sent.has(name);
        expect(sent.has(name) || other, `${service}.${name}`).toBe(true);
      }
    }
  });
});
