import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent } from "@gyre/agent";
import { type Model, systemClock } from "@gyre/ai";
import { call, fail, manualClock, scriptedModel, serviceTool } from "@gyre/ai/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { permissions } from "../../permissions.ts";
import { MAX_SEARCH_RESULTS, SEARCH_TIMEOUT_MS, webSearchTool } from "./tool.ts";

const context = {
  id: "1",
  signal: new AbortController().signal,
  update: () => {},
  host: { call: (): Promise<never> => Promise.reject(new Error("Calls nothing.")) },
  messages: [],
};
const env = { clock: systemClock };

let server: Server;
let address: string;
let status = 200;
let body = "";
let asked: { url: string; key: unknown }[] = [];

beforeAll(async () => {
  server = createServer(({ headers, url = "" }, response) => {
    asked.push({ url, key: headers["x-key"] });
    response.writeHead(status, { "content-type": "application/json" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  address = `http://127.0.0.1:${port}/search?q={query}&format=json`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

async function search(answer: unknown, query = "tea & milk") {
  body = typeof answer === "string" ? answer : JSON.stringify(answer);
  asked = [];
  const tool = webSearchTool(env, { url: address, headers: { "x-key": "k" } });
  return tool.execute({ query }, context);
}

const result = (n: number): object => ({
  ...{ url: `https://t.example/${n}`, title: `Tea ${n}`, content: `About ${n}` },
});

describe("a search engine", () => {
  it.each<[string, unknown]>([
    ["SearXNG and Tavily", { results: [result(1)] }],
    [
      "Brave",
      {
        web: { results: [{ url: "https://t.example/1", title: "Tea 1", description: "About 1" }] },
      },
    ],
    ["Serper", { organic: [{ link: "https://t.example/1", title: "Tea 1", snippet: "About 1" }] }],
    ["Google", { items: [{ link: "https://t.example/1", title: "Tea 1", snippet: "About 1" }] }],
  ])("is asked, and its results are text of the web: %s", async (_, answer) => {
    const given = await search(answer);
    expect(asked).toEqual([{ url: "/search?q=tea%20%26%20milk&format=json", key: "k" }]);
    expect(given).toMatchObject({
      content: [
        {
          text: "[1] Tea 1\nhttps://t.example/1\nAbout 1",
          source: { kind: "web", name: "search for tea & milk" },
        },
      ],
      details: { found: 1 },
    });
  });

  it("gives no more than a page of results, and says where there are none", async () => {
    const many = Array.from({ length: 30 }, (_, n) => result(n));
    expect(await search({ results: many })).toMatchObject({
      details: { found: MAX_SEARCH_RESULTS },
    });
    expect(await search({ results: [] })).toMatchObject({
      content: [{ text: "Nothing was found." }],
    });
  });

  it.each<[string, unknown, string]>([
    ["no JSON", "<html>", "did not answer with JSON"],
    ["another JSON", { hits: [] }, "without a list of results"],
    ["too much", `{"results":[],"x":"${"x".repeat(3_000_000)}"}`, "more than"],
  ])("is an error that says what to check: %s", async (_, answer, error) => {
    await expect(search(answer)).rejects.toThrow(error);
  });

  it("is an error with its status", async () => {
    status = 429;
    await expect(search({ results: [] })).rejects.toThrow("answered 429");
    status = 200;
  });

  it("has a time limit", async () => {
    const clock = manualClock(0);
    let begin: () => void = () => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const stuck: typeof fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener("abort", () => reject(new Error("cut")));
        begin();
      });
    const tool = webSearchTool({ clock }, { url: address, fetch: stuck });
    const searching = Promise.resolve(tool.execute({ query: "tea" }, context));
    const failed = searching.catch((error: unknown) => error);
    await begun;
    await clock.advance(SEARCH_TIMEOUT_MS);
    expect(String(await failed)).toContain("took longer than 20 s");
  });

  it.each(["search.example", "ftp://search.example/{query}", "https://search.example/?q="])(
    "is an address with a place for the words, unlike %s",
    (url) => {
      expect(() => webSearchTool(env, { url })).toThrow("{query}");
    },
  );
});

describe("the service of a model", () => {
  const found = serviceTool("web_search", {
    id: "s1",
    input: { query: "tea" },
    output: [{ type: "web_search_result", url: "https://t.example/", title: "Tea" }],
  });

  it("is asked with its own tool, again where it pauses, and its cost counts", async () => {
    const usage = { input: 10, output: 5 };
    const client = scriptedModel([{ parts: [found], stopReason: "pause" }, "Tea is old."], {
      usage,
    });
    const tool = webSearchTool(env, { client, model: client.model });
    const given = await tool.execute({ query: "tea" }, context);
    expect(given).toMatchObject({
      content: [{ text: "Tea is old.\n\n[1] Tea: https://t.example/", source: { kind: "web" } }],
      details: { found: 1 },
      usage: { input: 20, output: 10 },
    });
    expect(client.calls.map(({ options }) => options.serviceTools)).toEqual([
      [{ type: "webSearch" }],
      [{ type: "webSearch" }],
    ]);
    expect(client.calls[1]?.messages).toHaveLength(2);
  });

  it("limits how often Anthropic searches", async () => {
    const client = scriptedModel(["So."]);
    const model: Model = { ...client.model, api: "anthropic-messages" };
    await webSearchTool(env, { client, model: () => model }).execute({ query: "tea" }, context);
    expect(client.calls[0]?.options.serviceTools).toEqual([{ type: "webSearch", maxUses: 3 }]);
  });

  it("is asked in the format that has its search, at xAI", async () => {
    const client = scriptedModel(["So."]);
    const model: Model = { ...client.model, provider: "xai", api: "openai-completions" };
    await webSearchTool(env, { client, model }).execute({ query: "tea" }, context);
    expect(client.calls[0]?.model).toMatchObject({ provider: "xai", api: "openai-responses" });
  });

  it("is an error where the request or the search fails", async () => {
    const broken = scriptedModel([fail("Ollama has no option")]);
    const ask = (client: typeof broken) =>
      webSearchTool(env, { client, model: client.model }).execute({ query: "tea" }, context);
    await expect(ask(broken)).rejects.toThrow("Ollama has no option");
    const output = { type: "web_search_tool_result_error", error_code: "too_many_requests" };
    const limited = scriptedModel([[serviceTool("web_search", { id: "s1", output })]]);
    await expect(ask(limited)).rejects.toThrow("The search failed: too_many_requests");
  });
});

describe("permissions", () => {
  it("decide on a search as on the network", async () => {
    const tool = webSearchTool(env, { url: address });
    expect(await tool.access({ query: "tea\nmilk" })).toMatchObject({
      kind: "network",
      targets: [address.split("?")[0]],
      summary: expect.stringContaining("tea"),
    });
    asked = [];
    const model = scriptedModel([[call("web_search", { query: "tea" })], "No."]);
    const agent = new Agent({
      protocol: model,
      model: model.model,
      tools: [tool],
      middleware: [permissions({ mode: "auto", sandboxed: false, rules: { deny: ["fetch"] } })],
    });
    await agent.prompt("Search");
    const denied = agent.state.messages.find(({ role }) => role === "toolResult");
    expect(denied).toMatchObject({ outcome: "denied" });
    expect(asked).toEqual([]);
  });
});
