import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AssistantMessage, Model, ServiceToolContent } from "../messages/messages.ts";
import { addUsage } from "../messages/usage.ts";
import { catalog } from "../models/catalog.ts";
import { isNewer } from "../providers/google-generative-ai/models.ts";
import { createModel } from "../providers/testing/format-fixture.ts";
import { findFormat } from "../providers/testing/formats.ts";
import { createPrompt, fakeService, sse } from "../testing/fake-service.ts";
import { CitedSources, formatSource } from "./citations.ts";
import { listServiceTools, readServiceTool } from "./read.ts";
import { describeUse, MAX_SHOWN_CHARS } from "./to-text.ts";

// Responses with tools of the service. The bodies are made from the documentation of the services;
// recorded ones are played by `npm run recorded`.

const CLAUDE = createModel("anthropic-messages", "anthropic", "claude-sonnet-4-5", {
  price: { input: 3, output: 15, webSearch: 0.01 },
});
const GPT = createModel("openai-responses", "openai", "gpt-5.1");
const XAI = createModel("openai-responses", "xai", "grok-4.3", {
  price: { input: 1.25, output: 2.5 },
});
const GEMINI = createModel("google-generative-ai", "google", "gemini-2.5-flash");

async function receive(model: Model, body: string): Promise<AssistantMessage> {
  const { stream } = findFormat(model.api).create({ fetch: fakeService(body).fetch });
  const messages = [createPrompt("Hello")];
  const answer = await stream(model, { messages }, { apiKey: "test-key-0123456789" });
  return answer.result();
}

function claude(blocks: readonly object[], end: object = {}, stop = "end_turn"): string {
  return sse(
    { type: "message_start", message: { id: "msg_1", content: [] } },
    ...blocks.flatMap((content_block, index) => [
      { type: "content_block_start", index, content_block },
      { type: "content_block_stop", index },
    ]),
    {
      type: "message_delta",
      delta: { stop_reason: stop, ...("container" in end && { container: end.container }) },
      ...("usage" in end && { usage: end.usage }),
    },
    { type: "message_stop" },
  );
}

function gpt(...items: object[]): string {
  return gptWith(undefined, ...items);
}

function gptWith(usage: object | undefined, ...items: object[]): string {
  return sse(
    { type: "response.created", response: { id: "resp_1" } },
    ...items.map((item, output_index) => ({
      type: "response.output_item.done",
      output_index,
      item,
    })),
    { type: "response.completed", response: { status: "completed", output: items, usage } },
  );
}

const USE = {
  type: "server_tool_use",
  id: "srvtoolu_1",
  name: "web_search",
  input: { query: "tea" },
};
const FOUND = {
  type: "web_search_tool_result",
  tool_use_id: "srvtoolu_1",
  content: [
    {
      type: "web_search_result",
      url: "https://tea.example/",
      title: "Tea",
      encrypted_content: "EqgfCioIARgB",
      page_age: "April 30, 2025",
    },
  ],
};
const CITED = {
  type: "text",
  text: "Tea is old.",
  citations: [
    {
      type: "web_search_result_location",
      url: "https://tea.example/",
      title: "Tea",
      encrypted_index: "Eo8BCioIAhgB",
      cited_text: "Tea has been drunk for long",
    },
  ],
};

describe("what a service ran", () => {
  it("is a search with its results, and a text with its source: Anthropic", async () => {
    const usage = {
      input_tokens: 100,
      output_tokens: 10,
      server_tool_use: { web_search_requests: 2, web_fetch_requests: 0 },
    };
    const message = await receive(CLAUDE, claude([USE, FOUND, CITED], { usage }));
    expect(listServiceTools(message)).toEqual([
      {
        id: "srvtoolu_1",
        name: "web_search",
        kind: "webSearch",
        isDone: true,
        queries: ["tea"],
        sources: [{ url: "https://tea.example/", title: "Tea" }],
      },
    ]);
    expect(message.content.at(-1)).toMatchObject({
      text: "Tea is old.",
      citations: [
        { url: "https://tea.example/", title: "Tea", text: "Tea has been drunk for long" },
      ],
    });
    expect(message.usage.webSearches).toBe(2);
    expect(message.usage.cost).toMatchObject({ webSearches: 0.02, total: 0.02 + 0.00045 });
  });

  it("has a cost that says what is not in it where the price of a search is not known", async () => {
    const usage = {
      input_tokens: 1,
      output_tokens: 1,
      server_tool_use: { web_search_requests: 1 },
    };
    const { price: _, ...free } = CLAUDE;
    const priced = { ...free, price: { input: 3, output: 15 } };
    const { usage: counted } = await receive(priced, claude([], { usage }));
    expect(counted.cost).toMatchObject({ total: 0.000018, notIncluded: ["webSearch"] });
    expect(counted.cost).not.toHaveProperty("webSearches");
    // It is not lost where responses are added up.
    expect(addUsage({ input: 1, cost: { total: 1 } }, counted).cost?.notIncluded).toEqual([
      "webSearch",
    ]);
  });

  it("is billed by the number of searches, not of pages that were opened: OpenAI", async () => {
    const model = { ...GPT, price: { input: 1, output: 10, webSearch: 0.01 } };
    const action = (id: string, type: string, status = "completed"): object => ({
      ...{ type: "web_search_call", id, status, action: { type, query: "tea" } },
    });
    const usage = { input_tokens: 1_000_000, output_tokens: 0 };
    const body = gptWith(
      usage,
      action("ws_1", "search"),
      action("ws_2", "open_page"),
      action("ws_3", "find_in_page"),
      action("ws_4", "search"),
      action("ws_5", "search", "failed"),
    );
    const { usage: counted } = await receive(model, body);
    expect(counted).toMatchObject({ webSearches: 2, cost: { webSearches: 0.02, total: 1.02 } });
    expect(counted.cost).not.toHaveProperty("notIncluded");
  });

  it("is named in the cost where it is billed by another measure: OpenAI", async () => {
    const model = { ...GPT, price: { input: 1, output: 10 } };
    const usage = { input_tokens: 1_000_000, output_tokens: 0 };
    const code = { type: "code_interpreter_call", id: "ci_1", status: "completed", code: "1" };
    const files = { type: "file_search_call", id: "fs_1", status: "completed", queries: ["a"] };
    const { usage: counted } = await receive(model, gptWith(usage, code, files, code));
    expect(counted.cost).toEqual({
      ...{ input: 1, total: 1 },
      notIncluded: ["codeExecution", "fileSearch"],
    });
  });

  it("is in the cost that xAI bills, with its searches of the web and of X", async () => {
    const usage = {
      ...{ input_tokens: 1941, output_tokens: 583, total_tokens: 2524 },
      ...{ num_server_side_tools_used: 2, cost_in_usd_ticks: 123_000_000 },
    };
    const search = {
      type: "web_search_call",
      id: "fc_1",
      call_id: "",
      name: "web_search",
      arguments: '{"query":"tea","num_results":5}',
      status: "completed",
    };
    const posts = {
      type: "custom_tool_call",
      id: "ctc_1",
      call_id: "xs_call_1",
      name: "x_keyword_search",
      input: '{"query":"tea","limit":10}',
      status: "completed",
    };
    const text = {
      type: "output_text",
      text: "Tea is old.",
      annotations: [{ type: "url_citation", url: "https://tea.example/" }],
    };
    const message = { type: "message", id: "msg_1", role: "assistant", content: [text] };
    const answer = await receive(XAI, gptWith(usage, search, posts, message));
    expect(answer.usage).toMatchObject({ webSearches: 1, cost: { total: 0.0123 } });
    expect(listServiceTools(answer)).toMatchObject([
      { kind: "webSearch", queries: ["tea"], isDone: true },
      { kind: "webSearch", name: "x_keyword_search", queries: ["tea"], isDone: true },
    ]);
    expect(answer.content.at(-1)).toMatchObject({ citations: [{ url: "https://tea.example/" }] });
  });

  it.each([
    ["gemini-2.5-flash", 1, 0.035],
    ["gemini-3-flash-preview", 2, 0.028],
  ])("is billed by response or by search: %s", async (id, count, dollars) => {
    const [model] = catalog().filter((one) => one.provider === "google" && one.id === id);
    if (!model) throw new Error(`The catalog has no ${id}.`);
    const groundingMetadata = { webSearchQueries: ["tea", "cha", "tea"] };
    const content = { parts: [{ text: "Old." }] };
    const { usage } = await receive(
      model,
      sse({
        candidates: [{ content, finishReason: "STOP", groundingMetadata }],
        usageMetadata: { promptTokenCount: 0, candidatesTokenCount: 0 },
      }),
    );
    expect(usage.webSearches).toBe(count);
    expect(usage.cost?.webSearches).toBeCloseTo(dollars, 9);
  });

  it("has the price of a search that its count is for, in each model of the catalog", () => {
    const models = catalog().filter(({ provider }) => provider.startsWith("google"));
    for (const model of models.filter((one) => one.api === "google-generative-ai" && one.price)) {
      expect(model.price?.webSearch, model.id).toBe(
        isNewer(model) || !model.id.startsWith("gemini") ? 0.014 : 0.035,
      );
    }
  });

  it("is in the cost that OpenRouter bills, and not in that of Groq", async () => {
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
    const chunk = (delta: object, more: object = {}): object => ({
      choices: [{ index: 0, delta, finish_reason: null, ...more }],
    });
    const last = (more: object): object => ({ choices: [], usage: { ...usage, ...more } });
    const router = await receive(
      createModel("openai-completions", "openrouter", "openai/gpt-5.1"),
      sse(
        chunk({ content: "Old." }, { finish_reason: "stop" }),
        last({ cost: 0.0321, server_tool_use: { web_search_requests: 2 } }),
        "[DONE]",
      ),
    );
    expect(router.usage).toMatchObject({ webSearches: 2, cost: { total: 0.0321 } });
    const found = { results: [{ title: "Tea", url: "https://tea.example/", score: 0.9 }] };
    const tool = {
      ...{ index: 0, type: "browser.search", arguments: '{"query":"tea"}', output: "Old" },
      search_results: found,
    };
    const groq = await receive(
      createModel("openai-completions", "groq", "openai/gpt-oss-120b", {
        price: { input: 1, output: 1 },
      }),
      sse(
        chunk({ executed_tools: [tool] }),
        chunk({ content: "Old." }, { finish_reason: "stop" }),
        last({}),
        "[DONE]",
      ),
    );
    expect(groq.usage.cost).toMatchObject({ notIncluded: ["webSearch"] });
    expect(listServiceTools(groq)).toMatchObject([
      { kind: "webSearch", queries: ["tea"], sources: [{ url: "https://tea.example/" }] },
    ]);
  });

  it.each([
    ["web_search", "web_search_tool_result", "too_many_requests"],
    ["web_search", "web_search_tool_result", "max_uses_exceeded"],
    ["web_fetch", "web_fetch_tool_result", "url_not_accessible"],
    ["code_execution", "code_execution_tool_result", "container_expired"],
  ])("is an error that names its code: %s %s %s", async (name, type, error_code) => {
    const content = { type: `${type}_error`, error_code };
    const result = { type, tool_use_id: "srvtoolu_1", content };
    const message = await receive(CLAUDE, claude([{ ...USE, name }, result]));
    const [use] = listServiceTools(message);
    expect(use).toMatchObject({ name, isDone: true, error: error_code });
    expect(use && describeUse(use)).toContain(`It failed: ${error_code}`);
    expect(message.stopReason).toBe("stop");
  });

  it("is a pause where the service has not finished", async () => {
    const message = await receive(CLAUDE, claude([USE], {}, "pause_turn"));
    expect(message.stopReason).toBe("pause");
    expect(listServiceTools(message)).toMatchObject([{ isDone: false }]);
  });

  it("is code and its output, in a container that the message names: Anthropic", async () => {
    const blocks = [
      {
        type: "server_tool_use",
        id: "srvtoolu_2",
        name: "bash_code_execution",
        input: { command: "ls" },
      },
      {
        type: "bash_code_execution_tool_result",
        tool_use_id: "srvtoolu_2",
        content: {
          type: "bash_code_execution_result",
          stdout: "a.txt",
          stderr: "",
          return_code: 0,
          content: [],
        },
      },
    ];
    const container = { id: "container_1", expires_at: "2026-01-01T00:00:00Z" };
    const message = await receive(CLAUDE, claude(blocks, { container }));
    expect(listServiceTools(message)).toMatchObject([
      { kind: "codeExecution", code: "ls", output: "a.txt", exitCode: 0 },
    ]);
    expect(message.container).toEqual({ id: "container_1", expiresAt: "2026-01-01T00:00:00Z" });
  });

  it("is a page, and a call of an MCP server: Anthropic", async () => {
    const blocks = [
      {
        type: "server_tool_use",
        id: "srvtoolu_3",
        name: "web_fetch",
        input: { url: "https://tea.example/" },
      },
      {
        type: "web_fetch_tool_result",
        tool_use_id: "srvtoolu_3",
        content: {
          type: "web_fetch_result",
          url: "https://tea.example/",
          content: {
            type: "document",
            title: "Tea",
            source: { type: "text", media_type: "text/plain", data: "All about it" },
          },
        },
      },
      {
        type: "mcp_tool_use",
        id: "mcptoolu_1",
        name: "ask",
        server_name: "wiki",
        input: { q: "tea" },
      },
      {
        type: "mcp_tool_result",
        tool_use_id: "mcptoolu_1",
        is_error: false,
        content: [{ type: "text", text: "A drink" }],
      },
    ];
    expect(listServiceTools(await receive(CLAUDE, claude(blocks)))).toMatchObject([
      {
        kind: "webFetch",
        urls: ["https://tea.example/"],
        sources: [{ url: "https://tea.example/", title: "Tea" }],
      },
      { kind: "mcp", server: "wiki", tool: "ask", input: { q: "tea" }, output: "A drink" },
    ]);
  });

  it("is each of the items of OpenAI", async () => {
    const message = await receive(
      GPT,
      gpt(
        {
          type: "web_search_call",
          id: "ws_1",
          status: "completed",
          action: {
            type: "search",
            query: "tea",
            sources: [{ type: "url", url: "https://tea.example/" }],
          },
        },
        {
          type: "code_interpreter_call",
          id: "ci_1",
          status: "completed",
          container_id: "cntr_1",
          code: "print(1)",
          outputs: [{ type: "logs", logs: "1" }],
        },
        {
          type: "file_search_call",
          id: "fs_1",
          status: "completed",
          queries: ["tea"],
          results: [{ file_id: "file-1", filename: "tea.md", score: 0.9, text: "Old" }],
        },
        {
          type: "image_generation_call",
          id: "ig_1",
          status: "completed",
          revised_prompt: "A cup",
          result: "aGk=",
          output_format: "webp",
        },
        {
          type: "mcp_call",
          id: "mcp_1",
          name: "ask",
          server_label: "wiki",
          arguments: '{"q":"tea"}',
          output: "A drink",
        },
        { type: "mcp_call", id: "mcp_2", name: "ask", server_label: "wiki", error: "no such page" },
        {
          type: "message",
          id: "msg_1",
          content: [
            {
              type: "output_text",
              text: "Tea is old.",
              annotations: [
                {
                  type: "url_citation",
                  url: "https://tea.example/",
                  title: "Tea",
                  start_index: 0,
                  end_index: 3,
                },
                { type: "file_citation", file_id: "file-1", filename: "tea.md", index: 3 },
              ],
            },
          ],
        },
      ),
    );
    expect(listServiceTools(message)).toMatchObject([
      { kind: "webSearch", queries: ["tea"], sources: [{ url: "https://tea.example/" }] },
      { kind: "codeExecution", code: "print(1)", output: "1" },
      { kind: "fileSearch", queries: ["tea"], sources: [{ title: "tea.md", text: "Old" }] },
      {
        kind: "imageGeneration",
        prompt: "A cup",
        image: { type: "image", data: "aGk=", mimeType: "image/webp" },
      },
      { kind: "mcp", server: "wiki", tool: "ask", input: { q: "tea" }, output: "A drink" },
      { kind: "mcp", isDone: true, error: "no such page" },
    ]);
    expect(message.content.at(-1)).toMatchObject({
      citations: [
        { url: "https://tea.example/", title: "Tea", start: 0, end: 3 },
        { fileId: "file-1", title: "tea.md" },
      ],
    });
  });

  it("is a search that grounds passages: Gemini", async () => {
    const chunk = (parts: readonly object[], more: object = {}): object => ({
      candidates: [{ content: { parts }, ...more }],
    });
    const message = await receive(
      GEMINI,
      sse(
        chunk([{ executableCode: { language: "PYTHON", code: "print(1)" } }]),
        chunk([{ codeExecutionResult: { outcome: "OUTCOME_OK", output: "1\n" } }]),
        chunk([{ text: "Thé is old. " }]),
        chunk([{ text: "Thé is old. It is 茶." }], {
          finishReason: "STOP",
          groundingMetadata: {
            webSearchQueries: ["tea"],
            groundingChunks: [
              { web: { uri: "https://tea.example/", title: "Tea" } },
              { web: { uri: "https://cha.example/", title: "Cha" } },
            ],
            groundingSupports: [
              { segment: { text: "Thé is old." }, groundingChunkIndices: [0] },
              { segment: { text: "It is 茶." }, groundingChunkIndices: [1, 0, 7] },
            ],
          },
        }),
      ),
    );
    expect(listServiceTools(message)).toMatchObject([
      { kind: "codeExecution", code: "print(1)", output: "1\n", isDone: true },
      {
        kind: "webSearch",
        queries: ["tea"],
        sources: [{ url: "https://tea.example/" }, { url: "https://cha.example/" }],
      },
    ]);
    const text = message.content.find((block) => block.type === "text");
    expect(text?.citations).toEqual([
      { url: "https://tea.example/", title: "Tea", start: 0, end: 11 },
      { url: "https://cha.example/", title: "Cha", start: 24, end: 32 },
      { url: "https://tea.example/", title: "Tea", start: 24, end: 32 },
    ]);
    const sources = new CitedSources(message.content);
    expect(sources.mark(text?.text ?? "", text?.citations)).toBe(
      "Thé is old. [1] Thé is old. It is 茶. [2, 1]",
    );
  });

  it("is code that failed: Gemini", () => {
    const output = { outcome: "OUTCOME_DEADLINE_EXCEEDED", output: "" };
    expect(readServiceTool({ type: "serviceTool", id: "1", name: "code_execution", output }))
      // It stands where the service has an error code.
      .toMatchObject({ error: "OUTCOME_DEADLINE_EXCEEDED" });
  });
});

describe("a block of any service", () => {
  const values = fc.option(fc.anything({ maxDepth: 3 }), { nil: undefined });

  it("is read and described without an error, whatever is in it", () => {
    const names = fc.oneof(
      fc.constantFrom("web_search", "web_fetch", "bash_code_execution", "file_search", "mcp"),
      fc.string(),
    );
    fc.assert(
      fc.property(names, values, values, values, (name, input, output, raw) => {
        // Blocks are JSON.
        const text = JSON.stringify({ input, output, raw }, (_, item: unknown) =>
          typeof item === "bigint" || typeof item === "symbol" ? undefined : item,
        );
        const parts = JSON.parse(text) as object;
        const block: ServiceToolContent = { type: "serviceTool", id: "1", name, ...parts };
        const use = readServiceTool(block);
        expect(use.id).toBe("1");
        expect(describeUse(use).length).toBeLessThan(2 * (MAX_SHOWN_CHARS + 100));
      }),
    );
  });

  it("is shortened where it gave much", () => {
    const output = { stdout: "x".repeat(10_000) };
    const use = readServiceTool({ type: "serviceTool", id: "1", name: "code_execution", output });
    expect(describeUse(use).length).toBeLessThan(MAX_SHOWN_CHARS + 100);
    expect(describeUse(use)).toContain("characters in all");
  });
});

describe("a source", () => {
  it.each([
    [{ url: "https://a.example/", title: "A" }, "A: https://a.example/"],
    [{ url: "https://a.example/" }, "https://a.example/"],
    [{ title: "report.pdf", page: 3 }, "report.pdf, page 3"],
    [{ fileId: "file-1" }, "file-1"],
  ])("is one line: %j", (citation, line) => {
    expect(formatSource(citation)).toBe(line);
  });

  it("has one number, however often it is cited, and stands after its passage", () => {
    const sources = new CitedSources();
    const a = { url: "https://a.example/" };
    const b = { url: "https://b.example/" };
    expect(sources.mark("One. ", [a, b])).toBe("One. [1, 2] ");
    expect(sources.mark("Two three", [{ ...b, start: 0, end: 3 }])).toBe("Two [2] three");
    expect(sources.mark("Four", [{ ...a, start: 0, end: 99 }])).toBe("Four [1]");
    expect(sources.list).toEqual([a, b]);
  });
});
