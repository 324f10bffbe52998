// A server made with `@gyre/mcp` that has what the conformance suite asks for by name: `node server.mjs`.
// Writes its address as the first line of its output, and ends with its input.
import { setTimeout as sleep } from "node:timers/promises";
import { listenMcp } from "@gyre/mcp";

/**
 * @typedef {import("@gyre/mcp").ServedTool} Tool
 * @typedef {import("@gyre/mcp").ServedPrompt} Prompt
 * @typedef {import("@gyre/mcp").ServedQuestion} Question
 */

/** A red pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/** No sound at all. */
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const PAUSE_MS = 50;
const COMING_PROMPT = "test_prompt_that_comes_and_goes";

/** @param {string} text */
const textBlock = (text) => ({ type: /** @type {const} */ ("text"), text });
const image = { type: /** @type {const} */ ("image"), data: PNG, mimeType: "image/png" };

/**
 * A tool without arguments.
 *
 * @param {string} name
 * @param {Tool["call"]} call
 * @param {Tool["parameters"]} [parameters]
 * @returns {Tool}
 */
function tool(name, call, parameters = { type: "object", properties: {} }) {
  return { name, description: `For the check of ${name.replaceAll("_", " ")}.`, parameters, call };
}

/**
 * @param {string} uri
 * @param {string} mimeType
 * @param {string} text
 */
const embedded = (uri, mimeType, text) => ({
  type: /** @type {const} */ ("resource"),
  resource: { uri, mimeType, text },
});

/**
 * A question with one field, which has to be filled in.
 *
 * @param {string} message
 * @param {string} field
 * @param {"string" | "boolean"} type
 * @returns {Question & { kind: "form" }}
 */
const ask = (message, field, type = "string") => ({
  kind: "form",
  message,
  schema: {
    type: "object",
    properties: { [field]: type === "string" ? { type } : { type: "boolean" } },
    required: [field],
  },
});

/**
 * @param {string} text
 * @param {number} maxTokens
 * @returns {Question & { kind: "sample" }}
 */
const sample = (text, maxTokens = 100) => ({
  kind: "sample",
  params: { messages: [{ role: "user", content: textBlock(text) }], maxTokens },
});

/** @param {{ content: unknown }} result */
const formatContent = ({ content }) => JSON.stringify(content);

/** @param {{ action: string, content?: unknown }} answer */
const completed = ({ action, content = {} }) =>
  `Elicitation completed: action=${action}, content=${JSON.stringify(content)}`;

const required = { type: "string" };

/** @type {Tool[]} */
const tools = [
  tool("test_simple_text", () => "This is a simple text response for testing."),
  tool("test_image_content", () => ({ content: [image] })),
  tool("test_audio_content", () => ({
    content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  })),
  tool("test_embedded_resource", () => ({
    content: [
      embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
    ],
  })),
  tool("test_multiple_content_types", () => ({
    content: [
      textBlock("Multiple content types test:"),
      image,
      embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
  })),
  tool("test_tool_with_logging", async (_args, { log }) => {
    await log("info", "Tool execution started");
    await sleep(PAUSE_MS);
    await log("info", "Tool processing data");
    await sleep(PAUSE_MS);
    await log("info", "Tool execution completed");
    return "Logged.";
  }),
  tool("test_logging_tool", async (_args, { log }) => {
    await log("info", "A log message");
    return "Logged.";
  }),
  tool("test_error_handling", () => {
    throw new Error("This tool intentionally returns an error for testing");
  }),
  tool("test_tool_with_progress", async (_args, { progress }) => {
    for (const part of [0, 50, 100]) {
      await progress({ progress: part, total: 100 });
      await sleep(PAUSE_MS);
    }
    return "Done.";
  }),
  tool(
    "test_sampling",
    async ({ prompt }, context) => {
      const { answer } = await context.ask({ answer: sample(String(prompt)) });
      return `LLM response: ${formatContent(answer)}`;
    },
    { type: "object", properties: { prompt: required }, required: ["prompt"] },
  ),
  tool(
    "test_elicitation",
    async ({ message }, context) => {
      const { answer } = await context.ask({
        answer: {
          kind: "form",
          message: String(message),
          schema: {
            type: "object",
            properties: {
              username: { type: "string", description: "User's response" },
              email: { type: "string", description: "User's email address" },
            },
            required: ["username", "email"],
          },
        },
      });
      return `User response: ${JSON.stringify(answer)}`;
    },
    { type: "object", properties: { message: required }, required: ["message"] },
  ),
  tool("test_elicitation_sep1034_defaults", async (_args, context) => {
    const { answer } = await context.ask({
      answer: {
        kind: "form",
        message: "Please accept with defaults",
        schema: {
          type: "object",
          properties: {
            name: { type: "string", description: "User name", default: "John Doe" },
            age: { type: "integer", description: "User age", default: 30 },
            score: { type: "number", description: "User score", default: 95.5 },
            status: {
              type: "string",
              description: "User status",
              enum: ["active", "inactive", "pending"],
              default: "active",
            },
            verified: { type: "boolean", description: "Verification status", default: true },
          },
          required: [],
        },
      },
    });
    return completed(answer);
  }),
  tool("test_elicitation_sep1330_enums", async (_args, context) => {
    const options = ["option1", "option2", "option3"];
    const titled = ["First", "Second", "Third"].map((title, index) => ({
      const: `value${index + 1}`,
      title: `${title} Option`,
    }));
    const { answer } = await context.ask({
      answer: {
        kind: "form",
        message: "Please choose",
        schema: {
          type: "object",
          properties: {
            untitledSingle: { type: "string", enum: options },
            titledSingle: { type: "string", oneOf: titled },
            legacyEnum: {
              type: "string",
              enum: ["opt1", "opt2", "opt3"],
              enumNames: ["Option One", "Option Two", "Option Three"],
            },
            untitledMulti: { type: "array", items: { type: "string", enum: options } },
            titledMulti: { type: "array", items: { anyOf: titled } },
          },
          required: [],
        },
      },
    });
    return completed(answer);
  }),
  tool("test_input_required_result_elicitation", async (_args, context) => {
    const { user_name: name } = await context.ask({ user_name: ask("What is your name?", "name") });
    return `Hello, ${String(name.content?.["name"])}!`;
  }),
  tool("test_input_required_result_sampling", async (_args, context) => {
    const { capital_question: answer } = await context.ask({
      capital_question: sample("What is the capital of France?"),
    });
    return formatContent(answer);
  }),
  tool("test_input_required_result_list_roots", async (_args, context) => {
    const { client_roots: answer } = await context.ask({ client_roots: { kind: "roots" } });
    return JSON.stringify(answer.roots);
  }),
  tool("test_input_required_result_request_state", async (_args, context) => {
    await context.ask({ confirm: ask("Please confirm", "ok", "boolean") });
    return context.isResumed ? "state-ok" : "The state is missing.";
  }),
  tool("test_input_required_result_multiple_inputs", async (_args, context) => {
    const answers = await context.ask({
      user_name: ask("What is your name?", "name"),
      greeting: sample("Generate a greeting", 50),
      client_roots: { kind: "roots" },
    });
    return JSON.stringify(answers);
  }),
  tool("test_input_required_result_multi_round", async (_args, context) => {
    const { step1 } = await context.ask({ step1: ask("Step 1: What is your name?", "name") });
    const { step2 } = await context.ask({
      step2: ask("Step 2: What is your favorite color?", "color"),
    });
    return `${String(step1.content?.["name"])} likes ${String(step2.content?.["color"])}.`;
  }),
  tool("test_input_required_result_tampered_state", async (_args, context) => {
    await context.ask({ confirm: ask("Please confirm", "ok", "boolean") });
    return "The state was not changed.";
  }),
  tool("test_input_required_result_capabilities", async (_args, context) => {
    /** @type {Record<string, Question>} */
    const questions = {
      ...(context.can.form && { confirm: ask("Please confirm", "ok", "boolean") }),
      ...(context.can.sample && { sampled: sample("Say hello") }),
      ...(context.can.roots && { roots: { kind: "roots" } }),
    };
    return JSON.stringify(await context.ask(questions));
  }),
  // It does not look at what the client can.
  tool("test_missing_capability", async (_args, context) => {
    const { answer } = await context.ask({ answer: sample("Say hello") });
    return formatContent(answer);
  }),
  tool("test_streaming_elicitation", async (_args, context) => {
    await context.progress({ progress: 1 });
    const { answer } = await context.ask({ answer: ask("Please confirm", "ok", "boolean") });
    return completed(answer);
  }),
  tool("test_trigger_tool_change", () => {
    change(
      tools,
      tool("test_tool_that_comes_and_goes", () => "Here."),
    );
    listener.changed("tools");
    return "Changed.";
  }),
  tool("test_trigger_prompt_change", () => {
    change(prompts, { name: COMING_PROMPT, description: "It comes and goes.", get: () => "Here." });
    listener.changed("prompts");
    return "Changed.";
  }),
  {
    name: "json_schema_2020_12_tool",
    description: "Tool with JSON Schema 2020-12 features",
    parameters: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          $anchor: "addressDef",
          type: "object",
          properties: { street: { type: "string" }, city: { type: "string" } },
        },
      },
      properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
    call: (args) => JSON.stringify(args),
  },
  tool("test_custom_header", ({ region }) => `Region: ${String(region)}`, {
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" } },
    required: ["region"],
  }),
];

/** @type {Prompt[]} */
const prompts = [
  {
    name: "test_simple_prompt",
    description: "A simple prompt",
    get: () => "This is a simple prompt for testing.",
  },
  {
    name: "test_prompt_with_arguments",
    description: "A prompt with arguments",
    arguments: [
      { name: "arg1", description: "First test argument", required: true },
      { name: "arg2", description: "Second test argument", required: true },
    ],
    get: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
    complete: (_name, value) => ["paris", "park", "party"].filter((one) => one.startsWith(value)),
  },
  {
    name: "test_prompt_with_embedded_resource",
    description: "A prompt with a resource",
    arguments: [{ name: "resourceUri", description: "URI of the resource", required: true }],
    get: ({ resourceUri = "" }) => ({
      messages: [
        {
          role: "user",
          content: embedded(resourceUri, "text/plain", "Embedded resource content for testing."),
        },
        { role: "user", content: textBlock("Please process the embedded resource above.") },
      ],
    }),
  },
  {
    name: "test_prompt_with_image",
    description: "A prompt with an image",
    get: () => ({
      messages: [
        { role: "user", content: image },
        { role: "user", content: textBlock("Please analyze the image above.") },
      ],
    }),
  },
  {
    name: "test_input_required_result_prompt",
    description: "A prompt that asks first",
    async get(_args, context) {
      const { user_context: answer } = await context.ask({
        user_context: ask("What context should the prompt use?", "context"),
      });
      return `Use this context: ${String(answer.content?.["context"])}`;
    },
  },
];

const listener = await listenMcp({
  name: "gyre-conformance",
  version: "1",
  tools,
  prompts,
  resources: [
    {
      uri: "test://static-text",
      name: "Static text",
      description: "A static text resource",
      mimeType: "text/plain",
      read: () => "This is the content of the static text resource.",
    },
    {
      uri: "test://static-binary",
      name: "Static binary",
      description: "A static binary resource",
      mimeType: "image/png",
      read: () => [{ uri: "test://static-binary", mimeType: "image/png", blob: PNG }],
    },
    {
      uri: "test://watched-resource",
      name: "Watched resource",
      description: "A resource to watch",
      mimeType: "text/plain",
      read: () => "Watched.",
    },
  ],
  resourceTemplates: [
    {
      uriTemplate: "test://template/{id}/data",
      name: "Template",
      description: "A resource with a gap",
      mimeType: "application/json",
      read: ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
    },
  ],
  warn: (text) => console.error(text),
});

console.log(listener.url);
process.stdin.resume().once("end", () => void listener.close());

/**
 * Adds something to a list, or removes it where it is there.
 *
 * @template {{ name: string }} T
 * @param {T[]} list
 * @param {T} one
 */
function change(list, one) {
  const at = list.findIndex(({ name }) => name === one.name);
  if (at < 0) list.push(one);
  else list.splice(at, 1);
}
