import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { StreamOptions } from "../client/client.ts";
import type { GoogleOptions } from "../client/generation-options.ts";
import type { ServiceTool } from "../client/service-tools.ts";
import type { AssistantMessage, Context, Model, Tool } from "../messages/messages.ts";
import { createModel } from "../providers/testing/format-fixture.ts";
import { findFormat } from "../providers/testing/formats.ts";
import { createAnswers, createPrompt, fakeService } from "../testing/fake-service.ts";
import { manualClock } from "../testing/manual-clock.ts";

// What services are sent for tools of their own. The bodies are those of their documentation, and
// typed by their official SDKs where these have them.

const CLAUDE = createModel("anthropic-messages", "anthropic", "claude-sonnet-4-5");
const CLAUDE_ON_VERTEX = createModel(
  "anthropic-vertex",
  "google-vertex-anthropic",
  "claude-sonnet-4-5",
);
const GPT = createModel("openai-responses", "openai", "gpt-5.1");
const GEMINI = createModel("google-generative-ai", "google", "gemini-2.5-flash");
const GEMINI_3 = createModel("google-generative-ai", "google", "gemini-3-flash");
const VERTEX = createModel("google-generative-ai", "google-vertex", "gemini-3-flash");
const ROUTER = createModel("openai-completions", "openrouter", "openai/gpt-4.1");
const XAI = createModel("openai-responses", "xai", "grok-4.3");
const GROQ = createModel("openai-completions", "groq", "openai/gpt-oss-120b");

const LOOK: Tool = {
  name: "look",
  description: "Looks",
  parameters: { type: "object", properties: {} },
};

async function send(model: Model, options: StreamOptions, context: Partial<Context> = {}) {
  const service = fakeService({ status: 400, body: "{}" });
  const { stream } = findFormat(model.api).create({ fetch: service.fetch });
  const asked = { messages: [createPrompt("Hello")], ...context };
  const at = { ...model, baseUrl: "https://api.example/v1" };
  const answer = await stream(at, asked, { apiKey: "test-key-0123456789", ...options });
  const { errorMessage, failure } = await answer.result();
  const [request] = service.requests;
  return {
    error: errorMessage,
    failure,
    body: request?.body ?? {},
    headers: request?.headers,
    request,
  };
}

const START = "<!-- tools: written by requests.test.ts -->\n";
const END = "<!-- end of tools -->";

const ALL: Readonly<Record<ServiceTool["type"], ServiceTool>> = {
  webSearch: { type: "webSearch" },
  webFetch: { type: "webFetch" },
  codeExecution: { type: "codeExecution" },
  fileSearch: { type: "fileSearch", stores: ["store-1"] },
  imageGeneration: { type: "imageGeneration" },
  mcp: { type: "mcp", name: "wiki", url: "https://wiki.example/mcp" },
};

describe("a tool that a service has", () => {
  it.each<[string, Model, ServiceTool, object]>([
    [
      "a search of Anthropic",
      CLAUDE,
      {
        type: "webSearch",
        maxUses: 5,
        allowedDomains: ["example.org"],
        location: { city: "Utrecht", country: "NL", timezone: "Europe/Amsterdam" },
      },
      {
        type: "web_search_20250305",
        name: "web_search",
        max_uses: 5,
        allowed_domains: ["example.org"],
        user_location: {
          type: "approximate",
          city: "Utrecht",
          country: "NL",
          timezone: "Europe/Amsterdam",
        },
      },
    ],
    [
      "a search of Claude on Vertex AI",
      CLAUDE_ON_VERTEX,
      { type: "webSearch", blockedDomains: ["example.org"] },
      { type: "web_search_20250305", name: "web_search", blocked_domains: ["example.org"] },
    ],
    [
      "pages for Anthropic",
      CLAUDE,
      { type: "webFetch", maxUses: 2, maxContentTokens: 5_000, citations: true },
      {
        type: "web_fetch_20250910",
        name: "web_fetch",
        max_uses: 2,
        max_content_tokens: 5_000,
        citations: { enabled: true },
      },
    ],
    [
      "code of Anthropic",
      CLAUDE,
      { type: "codeExecution" },
      { type: "code_execution_20250825", name: "code_execution" },
    ],
    [
      "an MCP server for Anthropic",
      CLAUDE,
      { type: "mcp", name: "wiki", url: "https://wiki.example/mcp", allowedTools: ["read"] },
      {
        type: "mcp_toolset",
        mcp_server_name: "wiki",
        default_config: { enabled: false },
        configs: { read: { enabled: true } },
      },
    ],
    [
      "a search of OpenAI",
      GPT,
      { type: "webSearch", allowedDomains: ["example.org"], location: { country: "NL" } },
      {
        type: "web_search",
        filters: { allowed_domains: ["example.org"] },
        user_location: { type: "approximate", country: "NL" },
      },
    ],
    [
      "code of OpenAI",
      GPT,
      { type: "codeExecution", files: ["file-1"] },
      { type: "code_interpreter", container: { type: "auto", file_ids: ["file-1"] } },
    ],
    [
      "files of OpenAI",
      GPT,
      { type: "fileSearch", stores: ["vs_1"], maxResults: 3 },
      { type: "file_search", vector_store_ids: ["vs_1"], max_num_results: 3 },
    ],
    [
      "images of OpenAI",
      GPT,
      { type: "imageGeneration", size: "1024x1024", quality: "low", format: "webp" },
      { type: "image_generation", size: "1024x1024", quality: "low", output_format: "webp" },
    ],
    [
      "an MCP server for OpenAI",
      GPT,
      { type: "mcp", name: "wiki", url: "https://wiki.example/mcp", authorization: "t" },
      {
        type: "mcp",
        server_label: "wiki",
        server_url: "https://wiki.example/mcp",
        require_approval: "never",
        authorization: "t",
      },
    ],
    ["a search of Gemini", GEMINI, { type: "webSearch" }, { googleSearch: {} }],
    ["pages for Gemini", GEMINI, { type: "webFetch" }, { urlContext: {} }],
    ["code of Gemini", GEMINI, { type: "codeExecution" }, { codeExecution: {} }],
    [
      "files of Gemini",
      GEMINI,
      { type: "fileSearch", stores: ["fileSearchStores/a"], maxResults: 4 },
      { fileSearch: { fileSearchStoreNames: ["fileSearchStores/a"], topK: 4 } },
    ],
    [
      "a search of Gemini on Vertex AI",
      VERTEX,
      { type: "webSearch", blockedDomains: ["example.org"] },
      { googleSearch: { excludeDomains: ["example.org"] } },
    ],
    [
      "a search of xAI",
      XAI,
      { type: "webSearch", allowedDomains: ["example.org"] },
      { type: "web_search", filters: { allowed_domains: ["example.org"] } },
    ],
    [
      "a search of xAI without some domains",
      XAI,
      { type: "webSearch", blockedDomains: ["example.org"] },
      { type: "web_search", filters: { excluded_domains: ["example.org"] } },
    ],
    ["code of xAI", XAI, { type: "codeExecution" }, { type: "code_interpreter" }],
    [
      "files of xAI",
      XAI,
      { type: "fileSearch", stores: ["collection_1"], maxResults: 3 },
      { type: "file_search", vector_store_ids: ["collection_1"], max_num_results: 3 },
    ],
    [
      "an MCP server for xAI",
      XAI,
      { type: "mcp", name: "wiki", url: "https://wiki.example/mcp", allowedTools: ["read"] },
      {
        type: "mcp",
        server_label: "wiki",
        server_url: "https://wiki.example/mcp",
        allowed_tools: ["read"],
      },
    ],
    ["a search of OpenRouter", ROUTER, { type: "webSearch" }, { type: "openrouter:web_search" }],
    ["pages for OpenRouter", ROUTER, { type: "webFetch" }, { type: "openrouter:web_fetch" }],
    ["a search of Groq", GROQ, { type: "webSearch" }, { type: "browser_search" }],
    ["code of Groq", GROQ, { type: "codeExecution" }, { type: "code_interpreter" }],
  ])("is written as its documentation has it: %s", async (_, model, tool, expected) => {
    const { body } = await send(model, { serviceTools: [tool] });
    expect(body["tools"]).toEqual([expected]);
  });

  it("searches posts of X for xAI alone", async () => {
    const tool = {
      type: "xSearch",
      allowedHandles: ["nasa"],
      from: "2026-01-01",
      to: "2026-01-31",
      images: true,
    } as const;
    const { body } = await send(XAI, { providerOptions: { xai: { serviceTools: [tool] } } });
    expect(body["tools"]).toEqual([
      {
        type: "x_search",
        allowed_x_handles: ["nasa"],
        from_date: "2026-01-01",
        to_date: "2026-01-31",
        enable_image_understanding: true,
      },
    ]);
    const chat = createModel("openai-completions", "xai", "grok-4.3");
    const { error, request } = await send(chat, {
      providerOptions: { xai: { serviceTools: [tool] } },
    });
    expect(request).toBeUndefined();
    expect(error).toContain("Use a model of another format of xAI");
    const search = await send(chat, { serviceTools: [ALL.webSearch] });
    expect(search.request).toBeUndefined();
    expect(search.error).toContain(
      'Use api: "openai-responses" for the model: xAI has its tools there.',
    );
  });

  it("asks xAI for no more than it knows", async () => {
    const { body } = await send(XAI, {
      serviceTools: [ALL.webSearch, ALL.codeExecution, ALL.fileSearch],
    });
    expect(body["include"]).toEqual(["reasoning.encrypted_content", "file_search_call.results"]);
  });

  it("stands after the tools of the application, and is not made strict", async () => {
    const options: StreamOptions = { serviceTools: [ALL.webSearch], strictTools: true };
    for (const model of [CLAUDE, GPT, GROQ]) {
      const { body, error } = await send(
        model,
        { serviceTools: [ALL.webSearch] },
        { tools: [LOOK] },
      );
      expect(error, model.id).not.toContain("serviceTools");
      expect(body["tools"]).toHaveLength(2);
    }
    const { body } = await send(CLAUDE, options, { tools: [LOOK] });
    expect(body["tools"]).toMatchObject([
      { name: "look", strict: true },
      { type: "web_search_20250305", name: "web_search" },
    ]);
  });

  it("asks OpenAI for what it leaves out otherwise", async () => {
    const { body } = await send(GPT, {
      serviceTools: [ALL.webSearch, ALL.codeExecution, ALL.fileSearch],
    });
    expect(body["include"]).toEqual([
      "reasoning.encrypted_content",
      "web_search_call.action.sources",
      "code_interpreter_call.outputs",
      "file_search_call.results",
    ]);
  });

  it("names an MCP server and its token beside the tools of Anthropic", async () => {
    const mcp: ServiceTool = {
      type: "mcp",
      name: "wiki",
      url: "https://wiki.example/mcp",
      authorization: "secret",
    };
    const { body, headers } = await send(CLAUDE, { serviceTools: [mcp] });
    expect(body["mcp_servers"]).toEqual([
      {
        type: "url",
        name: "wiki",
        url: "https://wiki.example/mcp",
        authorization_token: "secret",
      },
    ]);
    expect(headers?.["anthropic-beta"]).toContain("mcp-client-2025-11-20");
  });

  it("may be called although old tools may not", async () => {
    const call = { type: "toolCall" as const, id: "toolu_1", name: "gone", arguments: {} };
    const answer = createAnswers(CLAUDE)([call], { stopReason: "toolUse" });
    const result = {
      role: "toolResult" as const,
      toolCallId: "toolu_1",
      toolName: "gone",
      content: [{ type: "text" as const, text: "x" }],
      isError: false,
      timestamp: 0,
    };
    const messages = [createPrompt("Hi"), answer, result];
    const { body } = await send(CLAUDE, { serviceTools: [ALL.webSearch] }, { messages });
    expect(body["tool_choice"]).toEqual({ type: "auto" });
    expect(body["tools"]).toMatchObject([{ name: "gone" }, { name: "web_search" }]);
  });

  it("stands beside tools of the application from Gemini 3 on", async () => {
    const options: StreamOptions = { serviceTools: [ALL.webSearch] };
    const { body } = await send(GEMINI_3, options, { tools: [LOOK] });
    expect(body["tools"]).toMatchObject([
      { functionDeclarations: [{ name: "look" }] },
      { googleSearch: {} },
    ]);
    expect(body["toolConfig"]).toEqual({ includeServerSideToolInvocations: true });
    const { error, request } = await send(GEMINI, options, { tools: [LOOK] });
    expect(request).toBeUndefined();
    expect(error).toBe(
      'The option "serviceTools" cannot be sent: model "gemini-2.5-flash" takes no tools of the application beside those of the service. Use a model from gemini-3 on, or leave one kind out.',
    );
  });
});

describe("a computer", () => {
  it("is a tool of the application whose form Anthropic knows", async () => {
    const computer: Tool = { ...LOOK, name: "computer" };
    const { body, headers } = await send(
      CLAUDE,
      {
        providerOptions: {
          anthropic: {
            serviceTools: [{ type: "computer", width: 1024, height: 768, version: "20250124" }],
          },
        },
      },
      { tools: [LOOK, computer] },
    );
    expect(body["tools"]).toMatchObject([
      { name: "look" },
      {
        type: "computer_20250124",
        name: "computer",
        display_width_px: 1024,
        display_height_px: 768,
      },
    ]);
    expect(headers?.["anthropic-beta"]).toContain("computer-use-2025-01-24");
  });

  it("is a browser whose actions Gemini knows", async () => {
    const { body } = await send(
      GEMINI,
      {
        providerOptions: {
          google: { serviceTools: [{ type: "computer", excluded: ["go_back"] }] },
        },
      },
      { tools: [LOOK, { ...LOOK, name: "click_at" }] },
    );
    expect(body["tools"]).toMatchObject([
      { functionDeclarations: [{ name: "look" }] },
      {
        computerUse: {
          environment: "ENVIRONMENT_BROWSER",
          excludedPredefinedFunctions: ["go_back"],
        },
      },
    ]);
  });
});

describe("the container of code", () => {
  const ask = async (container: AssistantMessage["container"], now: number, model = CLAUDE) => {
    const answered = createAnswers(model)([{ type: "text", text: "Done" }], { stopReason: "stop" });
    const answer: AssistantMessage = { ...answered, ...(container && { container }) };
    const messages = [createPrompt("Count"), answer, createPrompt("Again")];
    const clock = manualClock(now);
    const sent = await send(CLAUDE, { serviceTools: [ALL.codeExecution], clock }, { messages });
    return sent.body["container"];
  };
  const container = { id: "container_1", expiresAt: "2026-01-01T00:00:10Z" };
  const start = Date.parse("2026-01-01T00:00:00Z");

  it("is named again as long as it is there", async () => {
    expect(await ask(container, start)).toBe("container_1");
    expect(await ask(container, start + 10_000)).toBeUndefined();
    expect(await ask(undefined, start)).toBeUndefined();
  });

  it("is not that of another model", async () => {
    expect(await ask(container, start, GPT)).toBeUndefined();
  });
});

describe("a tool that a service does not have", () => {
  const HAVE: readonly [Model, readonly ServiceTool["type"][]][] = [
    [CLAUDE, ["webSearch", "webFetch", "codeExecution", "mcp"]],
    [CLAUDE_ON_VERTEX, ["webSearch"]],
    [GPT, ["webSearch", "codeExecution", "fileSearch", "imageGeneration", "mcp"]],
    [GEMINI, ["webSearch", "webFetch", "codeExecution", "fileSearch"]],
    [VERTEX, ["webSearch", "webFetch", "codeExecution"]],
    [XAI, ["webSearch", "codeExecution", "fileSearch", "mcp"]],
    [ROUTER, ["webSearch", "webFetch"]],
    [GROQ, ["webSearch", "codeExecution"]],
    [createModel("openai-completions", "deepseek", "deepseek-chat"), []],
    [createModel("openai-completions", "aviary", "owl"), []],
    [createModel("ollama", "ollama", "qwen3"), []],
    [createModel("bedrock-converse-stream", "amazon-bedrock", "amazon.nova-pro-v1:0"), []],
    [createModel("bedrock-invoke-stream", "amazon-bedrock", "anthropic.claude-sonnet-4-5"), []],
  ];

  it.each(HAVE)("is named, and nothing is sent: $provider $id", async (model, have) => {
    for (const [type, tool] of Object.entries(ALL)) {
      const { error, failure, request } = await send(model, { serviceTools: [tool] });
      const has = have.some((one) => one === type);
      expect(request !== undefined, type).toBe(has);
      if (has) continue;
      expect(failure).toEqual({ kind: "bad_request", retryable: false });
      expect(error).toMatch(/has no (tool|option) "(\w+)"/);
    }
  });

  it("is an empty cell of the table in docs/server-tools.md, as is each field", async () => {
    const fields: Readonly<Record<ServiceTool["type"], object>> = {
      webSearch: {
        ...{ maxUses: 1, allowedDomains: ["a.example"], blockedDomains: ["b.example"] },
        location: { country: "NL" },
      },
      webFetch: {
        ...{ maxUses: 1, allowedDomains: ["a.example"], blockedDomains: ["b.example"] },
        ...{ maxContentTokens: 100, citations: true },
      },
      codeExecution: { files: ["file-1"] },
      fileSearch: { stores: ["store-1"], maxResults: 2 },
      imageGeneration: { size: "1x1", quality: "low", format: "png", background: "opaque" },
      mcp: { name: "wiki", url: "https://w.example", authorization: "t", allowedTools: ["a"] },
    };
    const types = Object.keys(ALL) as ServiceTool["type"][];
    const lines = [
      `| service | format | ${types.map((type) => `\`${type}\``).join(" | ")} |`,
      `|---|---|${"---|".repeat(types.length)}`,
    ];
    for (const [model, have] of HAVE.filter(([, list]) => list.length > 0)) {
      const cells: string[] = [];
      for (const type of types) {
        const taken: string[] = [];
        for (const [name, value] of Object.entries(fields[type])) {
          const tool: ServiceTool = { ...ALL[type], [name]: value };
          const { request } = await send(model, { serviceTools: [tool] });
          if (request) taken.push(`\`${name}\``);
        }
        cells.push(have.includes(type) ? ["✓", taken.join(", ")].join(" ").trim() : "");
        if (!have.includes(type)) expect(taken).toEqual([]);
      }
      lines.push(`| \`${model.provider}\` | \`${model.api}\` | ${cells.join(" | ")} |`);
    }
    const table = `${lines.join("\n")}\n`;
    const page = new URL("../../../../docs/server-tools.md", import.meta.url);
    const [before = "", rest = ""] = readFileSync(page, "utf8").split(START);
    const [written = "", after = ""] = rest.split(END);
    if (process.env["WRITE_DOCS"]) writeFileSync(page, before + START + table + END + after);
    else expect(written).toBe(table);
  });

  it("is an error with what there is instead", async () => {
    const { error } = await send(CLAUDE, { serviceTools: [ALL.fileSearch] });
    expect(error).toBe(
      'The option "serviceTools" cannot be sent: Anthropic has no tool "fileSearch". It has webSearch, webFetch, codeExecution, mcp.',
    );
  });

  it("is also a field of a tool: a restriction is not dropped", async () => {
    const { error, request } = await send(GPT, {
      serviceTools: [{ type: "webSearch", blockedDomains: ["example.org"] }],
    });
    expect(request).toBeUndefined();
    expect(error).toBe(
      'The option "serviceTools" cannot be sent: the tool "webSearch" of OpenAI has no "blockedDomains". Leave it out. It has allowedDomains, location.',
    );
  });

  it("does not compile where it is not in the types", async () => {
    // @ts-expect-error: there is no such tool.
    const unknown: StreamOptions = { serviceTools: [{ type: "websearch" }] };
    // @ts-expect-error: the tool has no such field.
    const field: StreamOptions = { serviceTools: [{ type: "webSearch", max_uses: 1 }] };
    const google: GoogleOptions = {
      // @ts-expect-error: the service has no such tool.
      serviceTools: [{ type: "bash" }],
    };
    const own: StreamOptions = { providerOptions: { google } };
    expect((await send(CLAUDE, unknown)).error).toContain('no tool "websearch"');
    expect((await send(CLAUDE, field)).error).toContain('no "max_uses"');
    expect((await send(GEMINI, own)).error).toContain('no tool "bash"');
  });

  it("has a type", async () => {
    const options = { serviceTools: ["webSearch"] } as unknown as StreamOptions;
    expect((await send(CLAUDE, options)).error).toBe(
      'The option "serviceTools" is a list of tools, each with its type, such as webSearch.',
    );
  });
});
