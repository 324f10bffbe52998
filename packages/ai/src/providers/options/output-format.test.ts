import { describe, expect, it } from "vitest";
import type { JsonSchema } from "../../schema/schema.ts";
import type { StreamOptions } from "../../client/client.ts";
import type { Context, Model, Tool } from "../../messages/messages.ts";
import {
  createAnswers,
  createPrompt,
  createResult,
  fakeService,
  type FakeAnswer,
} from "../../testing/fake-service.ts";
import { createModel } from "../testing/format-fixture.ts";
import { findFormat } from "../testing/formats.ts";
import { requestCheckFor } from "../testing/request-checks.ts";

const SCHEMA = {
  type: "object",
  properties: { place: { type: "string", minLength: 2 }, degrees: { type: "number" } },
  required: ["place"],
};
const ANSWER: Tool = { name: "final_answer", description: "Answers", parameters: SCHEMA };
const LOOK: Tool = { name: "look", description: "Looks", parameters: { type: "object" } };
const BY_TOOL = { outputFormat: { schema: SCHEMA, tool: "final_answer" } };
const CLAUDE = createModel("anthropic-messages", "anthropic", "claude-sonnet-4-5");
const CHAT = createModel("openai-completions", "openai", "gpt-4.1", { reasoning: false });
const RESPONSES = createModel("openai-responses", "openai", "gpt-5.1");
const BEDROCK = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

/** As OpenAI takes it: every property is required, and null is one that was left out. */
const OPENAI = {
  type: "object",
  properties: {
    place: { type: "string", description: "(minLength: 2)" },
    degrees: { anyOf: [{ type: "number" }, { type: "null" }] },
  },
  required: ["place", "degrees"],
  additionalProperties: false,
};
const CLOSED = {
  ...OPENAI,
  properties: { ...OPENAI.properties, degrees: { type: "number" } },
  required: ["place"],
};

async function send(
  model: Model,
  options: StreamOptions,
  context: Partial<Context> = { tools: [LOOK, ANSWER] },
) {
  const service = fakeService({ status: 400, body: "{}" });
  const { stream } = findFormat(model.api).create({ fetch: service.fetch });
  const asked = { messages: [createPrompt("How is Rome?")], ...context };
  const answer = await stream(model, asked, { apiKey: "test-key-0123456789", ...options });
  const { errorMessage } = await answer.result();
  const body = service.requests[0]?.body;
  if (body) expect(requestCheckFor(model)(body, model.id)).toEqual([]);
  return { error: errorMessage, body, json: JSON.stringify(body) };
}

describe("structured output in requests", () => {
  it.each<[string, Model, Record<string, unknown>]>([
    ["Anthropic", CLAUDE, { output_config: { format: { type: "json_schema", schema: CLOSED } } }],
    [
      "Anthropic beside an effort",
      createModel("anthropic-messages", "anthropic", "claude-opus-4-7"),
      { output_config: { effort: "high", format: { type: "json_schema", schema: CLOSED } } },
    ],
    [
      "OpenAI Responses",
      RESPONSES,
      { text: { format: { type: "json_schema", name: "answer", schema: OPENAI, strict: true } } },
    ],
    [
      "OpenAI chat completions",
      CHAT,
      {
        response_format: {
          type: "json_schema",
          json_schema: { name: "answer", schema: OPENAI, strict: true },
        },
      },
    ],
    [
      "Gemini 3",
      createModel("google-generative-ai", "google", "gemini-3-pro"),
      {
        generationConfig: {
          responseMimeType: "application/json",
          responseJsonSchema: {
            ...SCHEMA,
            properties: { place: OPENAI.properties.place, degrees: { type: "number" } },
          },
        },
      },
    ],
    [
      "Amazon Bedrock",
      createModel("bedrock-converse-stream", "amazon-bedrock", BEDROCK),
      {
        outputConfig: {
          textFormat: {
            type: "json_schema",
            structure: { jsonSchema: { name: "answer", schema: JSON.stringify(CLOSED) } },
          },
        },
      },
    ],
    [
      "Amazon Bedrock, InvokeModel",
      createModel("bedrock-invoke-stream", "amazon-bedrock", BEDROCK),
      { output_config: { format: { type: "json_schema", schema: CLOSED } } },
    ],
  ])("%s is asked for it in place of the tool, and keeps the others", async (_, model, part) => {
    const { body, json } = await send(model, { ...BY_TOOL, thinkingLevel: "high" });
    expect(body).toMatchObject(part);
    expect(json).toContain('"look"');
    expect(json).not.toContain("final_answer");
  });

  it.each<[string, Model]>([
    ["Gemini 2.5", createModel("google-generative-ai", "google", "gemini-2.5-flash")],
    ["Mistral", createModel("openai-completions", "mistral", "mistral-large-latest")],
    ["Ollama", createModel("ollama", "ollama", "qwen3")],
  ])("%s is asked only without other tools and calls", async (_, model) => {
    const alone = await send(model, BY_TOOL, { tools: [ANSWER] });
    expect(alone.json).toContain("minLength: 2");
    expect(alone.json).not.toContain("final_answer");
    expect((await send(model, BY_TOOL)).json).toContain("final_answer");
    const call = { type: "toolCall" as const, id: "call_1", name: "look", arguments: {} };
    const messages = [
      createPrompt("Hi"),
      createAnswers(model)([call], { stopReason: "toolUse" }),
      createResult("call_1", [{ type: "text", text: "Seen." }]),
    ];
    const after = await send(model, BY_TOOL, { tools: [ANSWER], messages });
    expect(after.json).toContain("final_answer");
  });

  it.each<[string, Model]>([
    ["a model from before it", createModel("openai-completions", "openai", "gpt-4-turbo")],
    ["an older Claude", createModel("anthropic-messages", "anthropic", "claude-3-7-sonnet")],
    ["Groq", createModel("openai-completions", "groq", "openai/gpt-oss-120b")],
    ["Vertex AI", createModel("anthropic-vertex", "google-vertex-anthropic", "claude-sonnet-4-5")],
    ["another service", createModel("openai-completions", "aviary", "owl-2")],
  ])("%s gets the tool", async (_, model) => {
    const at = { ...model, baseUrl: "https://api.example/v1" };
    const { body, json } = await send(at, BY_TOOL);
    expect(json).toContain("final_answer");
    expect(body).not.toHaveProperty("response_format");
    expect(body).not.toHaveProperty("output_config.format");
  });

  it("follows what a model says of itself", async () => {
    const owl = createModel("openai-completions", "aviary", "owl-2", {
      baseUrl: "https://api.example/v1",
    });
    const quirks = { structuredOutput: true } as const;
    expect((await send({ ...owl, quirks }, BY_TOOL)).body).toHaveProperty("response_format");
    expect((await send({ ...owl, quirks: { structuredOutput: "alone" } }, BY_TOOL)).json).toContain(
      "final_answer",
    );
    const without = await send({ ...CHAT, quirks: { structuredOutput: false } }, BY_TOOL);
    expect(without.json).toContain("final_answer");
  });

  it.each<[string, Model, JsonSchema]>([
    ["any names", CHAT, { type: "object", additionalProperties: { type: "number" } }],
    ["a tuple", CLAUDE, { ...SCHEMA, properties: { t: { type: "array", prefixItems: [{}] } } }],
    ["a choice of objects", RESPONSES, { anyOf: [SCHEMA, { ...SCHEMA, title: "Other" }] }],
    ["recursion", CLAUDE, { ...SCHEMA, properties: { more: { $ref: "#" } } }],
  ])("gets the tool for a schema with %s, whole", async (_, model, schema) => {
    const tools = [{ ...ANSWER, parameters: schema }];
    const outputFormat = { schema: { ...schema }, tool: "final_answer" };
    const { body, json } = await send(model, { outputFormat }, { tools });
    expect(json).toContain("final_answer");
    expect(json).not.toContain("json_schema");
    expect(body).toBeDefined();
  });

  it("leaves a tool that is forced", async () => {
    const forced = { ...BY_TOOL, toolChoice: { name: "final_answer" } };
    expect((await send(CHAT, forced)).json).toContain('"final_answer"');
  });

  it("is an error that says why, where there is no tool that stands for it", async () => {
    const only = { outputFormat: { schema: SCHEMA } };
    const groq = createModel("openai-completions", "groq", "llama");
    expect((await send(groq, only, {})).error).toBe(
      'Groq cannot be asked for "outputFormat" with model "llama": it has no structured output there. Leave it out, or give the "tool" that stands for it.',
    );
    const gemini = createModel("google-generative-ai", "google", "gemini-2.5-flash");
    expect((await send(gemini, only, { tools: [LOOK] })).error).toContain("beside tools");
    const map = { outputFormat: { schema: { type: "object" } } };
    expect((await send(CHAT, map, {})).error).toContain(
      "the service cannot enforce the schema, because it may have properties of any name",
    );
    // A tool that the context does not have stands for nothing.
    expect((await send(groq, BY_TOOL, { tools: [LOOK] })).error).toContain("structured output");
    const list = { outputFormat: { schema: SCHEMA, name: "an answer" } };
    expect((await send(CHAT, list, {})).error).toBe(
      'The option "outputFormat" is { schema, name, tool } with the JSON Schema of an object.',
    );
    expect((await send(CHAT, { outputFormat: { schema: SCHEMA, name: "w" } }, {})).json).toContain(
      '"name":"w"',
    );
  });

  it("counts tools of the service as tools", async () => {
    const gemini = createModel("google-generative-ai", "google", "gemini-2.5-flash");
    const options = { ...BY_TOOL, serviceTools: [{ type: "webSearch" as const }] };
    const { json } = await send(gemini, options, { tools: [ANSWER] });
    expect(json ?? "").not.toContain("responseJsonSchema");
  });
});

describe("a form that the service rejects", () => {
  const TOO_LARGE = {
    status: 400,
    body: JSON.stringify({
      type: "error",
      error: {
        type: "invalid_request_error",
        message: "output_config.format.schema: Invalid schema: The compiled grammar is too large.",
      },
    }),
  };
  const ODD = {
    status: 400,
    body: JSON.stringify({ error: { message: "temperature: too hot" } }),
  };

  async function ask(model: Model, options: StreamOptions, ...answers: FakeAnswer[]) {
    const service = fakeService(...answers);
    const { stream } = findFormat(model.api).create({ fetch: service.fetch });
    const context = { messages: [createPrompt("How is Rome?")], tools: [LOOK, ANSWER] };
    const answer = await stream(model, context, { apiKey: "test-key-0123456789", ...options });
    const message = await answer.result();
    return { message, bodies: service.requests.map(({ body }) => body) };
  }

  it.each([CLAUDE, CHAT, RESPONSES])("is replaced by the tool: $api", async (model) => {
    const options = { ...BY_TOOL, onPayload: (body: object) => ({ ...body, mark: 1 }) };
    const { bodies, message } = await ask(model, options, TOO_LARGE, {
      status: 503,
      body: "",
    });
    expect(bodies).toHaveLength(2);
    const [native, tool] = bodies;
    expect(JSON.stringify(native)).not.toContain("final_answer");
    expect(JSON.stringify(tool)).toContain("final_answer");
    expect(JSON.stringify(tool)).toContain('"look"');
    expect(JSON.stringify(tool)).not.toContain("json_schema");
    // What a hook has changed stays.
    expect(tool).toMatchObject({ mark: 1, stream: true, model: model.id });
    expect(message.failure?.status).toBe(503);
  });

  it("is an error where no tool stands for it, and other errors are what they are", async () => {
    const only = await ask(CLAUDE, { outputFormat: { schema: SCHEMA } }, TOO_LARGE);
    expect(only.message.errorMessage).toContain("grammar is too large");
    expect(only.bodies).toHaveLength(1);
    const other = await ask(CLAUDE, BY_TOOL, ODD);
    expect(other.message.errorMessage).toContain("too hot");
    expect(other.bodies).toHaveLength(1);
    const again = await ask(CLAUDE, BY_TOOL, TOO_LARGE, TOO_LARGE);
    expect(again.message.errorMessage).toContain("grammar is too large");
    expect(again.bodies).toHaveLength(2);
  });

  it("needs a tool that the context has", async () => {
    const groq = createModel("openai-completions", "groq", "llama");
    const { error } = await send(groq, BY_TOOL, {});
    expect(error).toContain("no structured output");
  });
});
