import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FILE_KINDS, type FileKind } from "../../files/file-facts.ts";
import {
  type AssistantMessage,
  type FileContent,
  type FileSource,
  type Message,
  type Model,
  MODEL_INPUTS,
} from "../../messages/messages.ts";
import {
  createAnswers,
  createPrompt,
  createResult,
  fakeService,
  type SentRequest,
} from "../../testing/fake-service.ts";
import { SERVICES } from "../services/presets.ts";
import { createModel } from "../testing/format-fixture.ts";
import { findFormat } from "../testing/formats.ts";
import { requestCheckFor } from "../testing/request-checks.ts";
import type { SentSource } from "./table.ts";

const TYPES: Readonly<Record<FileKind, string>> = {
  image: "image/png",
  pdf: "application/pdf",
  text: "text/plain",
  audio: "audio/wav",
  video: "video/mp4",
  document: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
};
const NAMES: Readonly<Record<FileKind, string>> = {
  image: "images",
  pdf: "PDF",
  text: "text",
  audio: "audio",
  video: "video",
  document: "office documents",
};
const DATA = btoa("What is in it");
const SOURCES: readonly SentSource[] = ["base64", "url", "id"];
const SOURCE_NAMES: Readonly<Record<SentSource, string>> = {
  base64: "data",
  url: "URL",
  id: "id",
};

/** Of each service a model that reads all that the service takes. */
const MODELS: Readonly<Record<string, string>> = {
  anthropic: "claude-sonnet-4-5",
  openai: "gpt-4.1",
  google: "gemini-2.5-flash",
  "google-vertex": "gemini-2.5-flash",
  "google-vertex-anthropic": "claude-sonnet-4-5",
  "amazon-bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
  openrouter: "google/gemini-2.5-flash",
  mistral: "voxtral-small-latest",
  moonshot: "kimi-k2.6",
  zai: "glm-4.6v",
};

const OPEN = ["together", "llamacpp", "vllm"];

interface Row {
  service: string;
  model: Model;
}

const ROWS: readonly Row[] = [
  ...SERVICES.map(({ id, api }) => createRow(id, api)),
  createRow("amazon-bedrock", "bedrock-converse-stream", "amazon.nova-pro-v1:0"),
  createRow("amazon-bedrock", "bedrock-invoke-stream"),
  createRow("openai", "openai-completions", "gpt-4o-audio-preview"),
  createRow("xai", "openai-responses", "grok-4.3"),
];

function createRow(service: string, api: string, id?: string): Row {
  const name = id ?? MODELS[service] ?? "model-1";
  const model = createModel(api, service, name, {
    reasoning: false,
    baseUrl: "https://api.example/v1",
    // Services of open models: what a model reads beside images is known of the model alone.
    ...(OPEN.includes(service) && { input: MODEL_INPUTS }),
  });
  return { service, model };
}

function createFile(kind: FileKind, source: SentSource, model: Model): FileContent {
  const url = model.provider === "amazon-bedrock" ? "s3://bucket/key" : "https://example.org/a";
  // The id of a file is its address at Google, and begins with its kind at OpenAI.
  const id = model.api.startsWith("google") ? "https://files.example/1" : "file-1";
  const sources: Readonly<Record<SentSource, FileSource>> = {
    base64: { type: "base64", data: DATA },
    url: { type: "url", url },
    id: { type: "id", id, service: model.provider },
  };
  return { type: "file", mediaType: TYPES[kind], name: `a ${kind}`, source: sources[source] };
}

interface Asked {
  message: AssistantMessage;
  request: SentRequest | undefined;
}

async function ask(model: Model, messages: readonly Message[]): Promise<Asked> {
  const service = fakeService({ status: 400, body: "{}" });
  const { stream } = findFormat(model.api).create({ fetch: service.fetch });
  const tools = [{ name: "look", description: "Looks", parameters: { type: "object" } }] as const;
  const answer = await stream(model, { messages, tools }, { apiKey: "test-key-0123456789" });
  return { message: await answer.result(), request: service.requests.at(-1) };
}

function userWith(file: FileContent): Message {
  return { role: "user", content: [{ type: "text", text: "What is it?" }, file], timestamp: 0 };
}

/** Whether a file is sent. If not, the error says what it is, where it was to go, and what is taken. */
async function isSent({ model, service }: Row, file: FileContent): Promise<boolean> {
  const { message, request } = await ask(model, [userWith(file)]);
  if (request) {
    expect(requestCheckFor(model)(request.body, model.id), file.name).toEqual([]);
    expect(hasFile(request.body, file), JSON.stringify(request.body)).toBe(true);
    return true;
  }
  const { name = service } = SERVICES.find(({ id }) => id === service) ?? {};
  expect(message.failure).toEqual({ kind: "bad_request", retryable: false });
  for (const part of [file.name, file.mediaType, name, model.id, "takes"]) {
    expect(message.errorMessage).toContain(part);
  }
  return false;
}

/** Whether the contents of a file, its address or its id are in a request. */
function hasFile(body: unknown, { source }: FileContent): boolean {
  const text = JSON.stringify(body);
  if (source.type === "url") return text.includes(source.url);
  if (source.type === "id") return text.includes(source.id);
  return text.includes(DATA) || text.includes("What is in it");
}

async function listTaken(row: Row, kind: FileKind): Promise<SentSource[]> {
  const taken: SentSource[] = [];
  for (const source of SOURCES) {
    if (await isSent(row, createFile(kind, source, row.model))) taken.push(source);
  }
  return taken;
}

const PAGE = new URL("../../../../../docs/files.md", import.meta.url);
const START = "<!-- files: written by services.test.ts -->\n";
const END = "<!-- end of files -->";

describe("the table of files", () => {
  it("is what services are sent, and an error that says what is taken for every empty cell", async () => {
    const lines = [
      `| service | format | model | ${FILE_KINDS.map((kind) => NAMES[kind]).join(" | ")} |`,
      `|---|---|---|${FILE_KINDS.map(() => "---|").join("")}`,
    ];
    for (const row of ROWS) {
      const cells: string[] = [];
      for (const kind of FILE_KINDS) {
        const taken = await listTaken(row, kind);
        cells.push(taken.map((source) => SOURCE_NAMES[source]).join(", "));
      }
      const { api, id } = row.model;
      const shown = row.model.input ? "as its `input` says" : id === "model-1" ? "" : `\`${id}\``;
      lines.push(`| \`${row.service}\` | \`${api}\` | ${shown} | ${cells.join(" | ")} |`);
    }
    const table = `${lines.join("\n")}\n`;
    const page = readFileSync(PAGE, "utf8");
    const [before = "", rest = ""] = page.split(START);
    const [written = "", after = ""] = rest.split(END);
    if (process.env["WRITE_DOCS"]) writeFileSync(PAGE, before + START + table + END + after);
    else expect(written).toBe(table);
  });
});

describe.each(ROWS.map((row) => [`${row.service} ${row.model.api} ${row.model.id}`, row] as const))(
  "%s",
  (_, { model }) => {
    const answer = createAnswers(model);
    const call = { type: "toolCall", id: "c_1", name: "look", arguments: {} } as const;
    const before = [createPrompt("Look"), answer([call], { stopReason: "toolUse" })];

    it.each(FILE_KINDS)("a tool may give %s: it is sent, or a text names it", async (kind) => {
      const file = createFile(kind, "base64", model);
      const results = [createResult("c_1", [{ type: "text", text: "Here" }, file])];
      const { request } = await ask(model, [...before, ...results]);
      expect(requestCheckFor(model)(request?.body, model.id)).toEqual([]);
      const sent = hasFile(request?.body, file);
      const named = JSON.stringify(request?.body).includes(`left out (a ${kind}, ${TYPES[kind]}`);
      expect([sent, named]).toEqual(sent ? [true, false] : [false, true]);
      // Alone in a result, and in one that is an error.
      for (const isError of [false, true]) {
        const alone = [createResult("c_1", [file], { isError }), createPrompt("And?")];
        const { request: other } = await ask(model, [...before, ...alone]);
        expect(requestCheckFor(model)(other?.body, model.id)).toEqual([]);
        expect(hasFile(other?.body, file)).toBe(sent);
      }
    });

    it.each(FILE_KINDS)("%s of earlier messages never stop a request", async (kind) => {
      for (const source of SOURCES) {
        const file = createFile(kind, source, model);
        const earlier = [userWith(file), answer([{ type: "text", text: "Fine" }])];
        const { request } = await ask(model, [...earlier, createPrompt("And now?")]);
        expect(requestCheckFor(model)(request?.body, model.id)).toEqual([]);
        const isNamed = JSON.stringify(request?.body).includes(`a ${kind}`);
        expect(hasFile(request?.body, file) || isNamed).toBe(true);
      }
    });
  },
);
