import { Agent } from "@gyre/agent";
import type { ToolResultMessage } from "@gyre/ai";
import { call, type ScriptStep, scriptedModel } from "@gyre/ai/testing";
import { permissions } from "@gyre/tools";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { modelText } from "../../../tools/src/testing/model-text.ts";
import type { McpServerConfig } from "../config/config.ts";
import { listenMcp } from "../serve/listen.ts";
import { FakeOAuth } from "../testing/fake-oauth.ts";
import { protectedServer } from "../testing/protected-server.ts";
import { type TeaServer, teaServer } from "../testing/tea-server.ts";
import { MCP_CALL, TOOL_SEARCH } from "./catalog.ts";
import { type Mcp, type McpOptions, openMcp } from "./hub.ts";

let server: TeaServer;
let opened: Mcp[];

beforeEach(async () => {
  opened = [];
  server = await teaServer();
});
afterEach(async () => {
  for (const mcp of opened) await mcp.close();
  await server.close();
});

async function open(
  more: Partial<McpServerConfig> = {},
  options: Partial<McpOptions> = {},
): Promise<Mcp> {
  const config = { url: server.url, ...more } as McpServerConfig;
  const servers = [{ name: "tea", scope: "user", config }];
  const mcp = await openMcp({ servers, cwd: "/", ...options });
  opened.push(mcp);
  return mcp;
}

/** What a model gets for its calls. */
async function ask(mcp: Mcp, calls: ScriptStep[], allow = ["mcp__tea__*"]): Promise<string[]> {
  const model = scriptedModel([...calls, "Done."]);
  const agent = new Agent({
    protocol: model,
    model: model.model,
    tools: [...mcp.tools],
    middleware: [
      mcp.middleware,
      permissions({ sandboxed: false, headless: true, rules: { allow } }),
    ],
  });
  const { messages } = await agent.prompt("Go");
  const results = messages.filter((one): one is ToolResultMessage => one.role === "toolResult");
  return results.map((result) => modelText({ content: result.content }));
}

const use = (tool: string, args: object = {}): ScriptStep =>
  call(MCP_CALL, { tool, arguments: args });

describe("resources of a server", () => {
  it("are found, listed and read as its tools are, as words of the server", async () => {
    const mcp = await open();
    const [found = "", listed = "", read = "", none = ""] = await ask(mcp, [
      call(TOOL_SEARCH, { query: "resources documents" }),
      use("mcp__tea__list_resources"),
      use("mcp__tea__read_resource", { uri: "tea://menu" }),
      use("mcp__tea__read_resource", { uri: "tea://nowhere" }),
    ]);
    expect(found).toContain("mcp__tea__read_resource");
    expect(listed).toMatch(
      /<source kind="mcp" name="tea"[^]*tea:\/\/menu - menu - What there is\.[^]*tea:\/\/kinds\/\{kind\}/,
    );
    expect(read).toMatch(/<source kind="mcp" name="tea\/read_resource"[^]*green, black/);
    expect(none).toContain("answered with an error");
  });

  it("are under permissions", async () => {
    const [read = ""] = await ask(
      await open(),
      [use("mcp__tea__read_resource", { uri: "tea://menu" })],
      [],
    );
    expect(read).not.toContain("green");
    expect(read).toContain("approval");
  });

  it("can be left out by the filter of tools", async () => {
    const mcp = await open({ tools: ["brew"] });
    await mcp.connect();
    expect(mcp.status()[0]?.tools).toEqual(["mcp__tea__brew"]);
  });

  it("do not take the name of a tool that the server has", async () => {
    const [brew] = server.tools;
    if (!brew) throw new Error("There is no tool.");
    server.tools.push({ ...brew, name: "read_resource", description: "Its own." });
    const mcp = await open();
    await mcp.connect();
    const names = mcp.status()[0]?.tools ?? [];
    expect(names.filter((name) => name.startsWith("mcp__tea__read_resource"))).toHaveLength(2);
    expect(new Set(names).size).toBe(names.length);
    const [read = ""] = await ask(mcp, [use("mcp__tea__read_resource", { kind: "own" })]);
    expect(read).toContain("Brewed own.");
  });

  it("of a server that has none need no tools", async () => {
    const bare = await listenMcp({ version: "1", tools: server.tools });
    try {
      const mcp = await open({ url: bare.url });
      await mcp.connect();
      expect(mcp.status()[0]?.tools.some((name) => name.includes("resource"))).toBe(false);
      await mcp.close();
    } finally {
      await bare.close();
    }
  });
});

describe("prompts of a server", () => {
  it("are listed with their arguments, and become what the user says", async () => {
    const mcp = await open();
    expect(await mcp.prompts()).toEqual([
      {
        server: "tea",
        name: "recommend",
        description: "Recommends a tea.",
        arguments: [{ name: "mood", description: "How you are", isRequired: true }],
      },
    ]);
    expect(await mcp.prompt("tea", "recommend", { mood: "tired" })).toEqual([
      { type: "text", text: "Recommend a tea for a guest who is tired." },
    ]);
    await expect(mcp.prompt("tea", "recommend", {})).rejects.toThrow("answered with an error");
    await expect(mcp.prompt("tee", "recommend", {})).rejects.toThrow("Did you mean tea?");
  });

  it("may have several messages and pictures, and cannot write to a terminal", async () => {
    server.prompts.push({
      name: "long",
      get: () => ({
        messages: [
          { role: "user", content: { type: "text", text: "One\u001b[2J" } },
          { role: "assistant", content: { type: "text", text: "Two" } },
          {
            role: "user",
            content: { type: "image", data: "R0lGODlhAQABAAAAACw=", mimeType: "image/gif" },
          },
        ],
      }),
    });
    const mcp = await open();
    expect(await mcp.prompt("tea", "long", {})).toMatchObject([
      { type: "text", text: "One\n\nAssistant: Two" },
      { type: "image", mimeType: "image/gif" },
    ]);
  });
});

describe("a server that wants a login", () => {
  it("says so, is used after it, and wants it again when it is forgotten", async () => {
    const oauth = new FakeOAuth();
    await oauth.listen();
    const guarded = await protectedServer(oauth, { tools: server.tools });
    try {
      const openLogin = async () => ({
        redirectUrl: "http://127.0.0.1:1/callback",
        async authorize(url: URL) {
          const response = await fetch(url, { redirect: "manual" });
          return new URL(response.headers.get("location") ?? "");
        },
      });
      const config = { url: guarded.url };
      const mcp = await open(config);
      await mcp.connect();
      expect(mcp.status()[0]).toMatchObject({ state: "down", needsLogin: true });
      const willing = await open(config, { openLogin });
      await willing.logIn("tea");
      expect(willing.status()[0]).toMatchObject({ state: "ready" });
      expect(willing.status()[0]?.needsLogin).toBeUndefined();
      willing.logOut("tea");
      await expect(mcp.logIn("tee")).rejects.toThrow("Did you mean tea?");
    } finally {
      for (const mcp of opened) await mcp.close();
      await guarded.close();
      await oauth.close();
    }
  });
});
