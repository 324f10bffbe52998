import { describe, expect, it } from "vitest";
import type { Json } from "./parts.ts";
import { readRequest } from "./request-transcript.ts";

const SCHEMA = { type: "object", properties: { depth: { type: "number" } } };
const INPUT = { depth: 3 };
const FUNCTION = { name: "dig", description: "Digs a hole.", parameters: SCHEMA };

/** One and the same request in each format. */
const REQUESTS: readonly [api: string, path: string, body: Json][] = [
  [
    "anthropic-messages",
    "/v1/messages",
    {
      model: "mole-1",
      system: [{ type: "text", text: "Be brief." }],
      messages: [
        { role: "user", content: "Dig." },
        {
          role: "assistant",
          content: [
            { type: "text", text: "I dig." },
            { type: "tool_use", id: "c1", name: "dig", input: INPUT },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "Done." }] },
          ],
        },
      ],
      tools: [{ name: "dig", description: "Digs a hole.", input_schema: SCHEMA }],
      tool_choice: { type: "any" },
    },
  ],
  [
    "openai-completions",
    "/v1/chat/completions",
    {
      model: "mole-1",
      messages: [
        { role: "developer", content: "Be brief." },
        { role: "user", content: [{ type: "text", text: "Dig." }] },
        {
          role: "assistant",
          content: "I dig.",
          tool_calls: [{ id: "c1", function: { name: "dig", arguments: '{"depth": 3}' } }],
        },
        { role: "tool", tool_call_id: "c1", content: "Done." },
      ],
      tools: [{ type: "function", function: FUNCTION }],
      tool_choice: "required",
    },
  ],
  [
    "openai-responses",
    "/v1/responses",
    {
      model: "mole-1",
      instructions: "Be brief.",
      input: [
        { role: "user", content: "Dig." },
        { role: "assistant", content: [{ type: "output_text", text: "I dig." }] },
        { type: "function_call", call_id: "c1", name: "dig", arguments: '{"depth":3}' },
        { type: "function_call_output", call_id: "c1", output: "Done." },
      ],
      tools: [{ type: "function", ...FUNCTION }],
      tool_choice: "required",
    },
  ],
  [
    "google-generative-ai",
    "/v1beta/models/mole-1:streamGenerateContent?alt=sse",
    {
      system_instruction: { parts: [{ text: "Be brief." }] },
      contents: [
        { role: "user", parts: [{ text: "Dig." }] },
        {
          role: "model",
          parts: [{ text: "I dig." }, { functionCall: { id: "c1", name: "dig", args: INPUT } }],
        },
        {
          role: "user",
          parts: [{ functionResponse: { id: "c1", name: "dig", response: { output: "Done." } } }],
        },
      ],
      tools: [
        {
          function_declarations: [
            {
              ...FUNCTION,
              parameters: { type: "OBJECT", properties: { depth: { type: "NUMBER" } } },
            },
          ],
        },
      ],
      toolConfig: { functionCallingConfig: { mode: "ANY" } },
    },
  ],
  [
    "bedrock-converse-stream",
    "/model/mole-1/converse-stream",
    {
      system: [{ text: "Be brief." }, { cachePoint: { type: "default" } }],
      messages: [
        { role: "user", content: [{ text: "Dig." }] },
        {
          role: "assistant",
          content: [
            { text: "I dig." },
            { toolUse: { toolUseId: "c1", name: "dig", input: INPUT } },
          ],
        },
        {
          role: "user",
          content: [{ toolResult: { toolUseId: "c1", content: [{ text: "Done." }] } }],
        },
      ],
      toolConfig: {
        tools: [
          { toolSpec: { name: "dig", description: "Digs a hole.", inputSchema: { json: SCHEMA } } },
        ],
        toolChoice: { any: {} },
      },
    },
  ],
];

describe("readRequest", () => {
  it.each(REQUESTS)("reads what a request says in the format %s", (api, path, body) => {
    const request = readRequest(api, body, path);
    expect(request).toMatchObject({
      model: "mole-1",
      system: "Be brief.",
      turns: [
        { role: "user", texts: [{ text: "Dig." }] },
        {
          role: "assistant",
          texts: [{ text: "I dig." }],
          calls: [{ id: "c1", name: "dig", arguments: INPUT }],
        },
        { role: "user", results: [{ id: "c1", text: "Done.", isError: false }] },
      ],
      tools: [FUNCTION],
      toolChoice: "required",
    });
  });

  it("reads Ollama's messages, which may have no ids", () => {
    const { turns } = readRequest(
      "ollama",
      {
        model: "mole-1",
        messages: [
          { role: "user", content: "Dig.", images: ["AAAA"] },
          {
            role: "assistant",
            content: "",
            tool_calls: [{ function: { name: "dig", arguments: INPUT } }],
          },
          { role: "tool", tool_name: "dig", content: "Done." },
        ],
      },
      "/api/chat",
    );
    expect(turns[0]?.images).toEqual([{ mimeType: "image/png", data: "AAAA" }]);
    expect(turns[1]?.calls).toEqual([{ id: "", name: "dig", arguments: INPUT }]);
    expect(turns[2]?.results).toMatchObject([{ id: "", name: "dig", text: "Done." }]);
  });

  it("keeps seals beside what they seal", () => {
    const request = readRequest(
      "google-generative-ai",
      {
        contents: [
          {
            role: "model",
            parts: [
              { text: "Hm.", thought: true },
              { functionCall: { name: "dig" }, thoughtSignature: "s1" },
            ],
          },
        ],
      },
      "/models/mole-1:streamGenerateContent",
    );
    expect(request.turns[0]).toMatchObject({
      thinking: [{ text: "Hm." }],
      calls: [{ name: "dig", arguments: {}, seal: "s1" }],
    });
  });

  it("names what it has no words for", () => {
    const content = [
      { type: "document" },
      { type: "image", source: { type: "url", url: "https://example.com/mole.png" } },
    ];
    const body = { messages: [{ role: "user", content }], tools: [{ type: "web_search" }] };
    const { turns, serviceTools } = readRequest("anthropic-messages", body, "/v1/messages");
    expect(turns[0]?.other).toEqual(["document", "image by address"]);
    expect(serviceTools).toEqual(["web_search"]);
  });

  it("reads a body of the model's maker as that maker writes it", () => {
    const body = { anthropic_version: "x", messages: [{ role: "user", content: "Dig." }] };
    const path = "/model/claude-mole%3A0/invoke-with-response-stream";
    expect(readRequest("bedrock-converse-stream", body, path)).toMatchObject({
      model: "claude-mole:0",
      turns: [{ texts: [{ text: "Dig." }] }],
    });
  });

  it("refuses a format that it does not know", () => {
    expect(() => readRequest("morse", {}, "/")).toThrow('no reader for requests of "morse"');
  });
});
