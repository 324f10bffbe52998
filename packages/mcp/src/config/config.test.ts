import { describe, expect, it } from "vitest";
import {
  expandConfig,
  expandVariables,
  isAddress,
  isWanted,
  type McpServerConfig,
  readMcpServers,
  variablesIn,
} from "./config.ts";
import { type McpOptions, openMcp } from "../tools/hub.ts";
import { MAX_TOOL_NAME_CHARS, serverAliases, toolNames } from "../tools/names.ts";
import { ranked } from "../tools/search.ts";

describe("servers in a file", () => {
  it("are programs or addresses, as other agents write them", () => {
    const { servers, problems } = readMcpServers({
      one: { command: "npx", args: ["-y", "x"], env: { A: "b" }, unknown: 1 },
      two: { type: "http", url: "https://example.org/mcp", headers: { A: "b" } },
      three: { url: "https://example.org/mcp", disabled: true, timeout: 5, tools: ["a*"] },
      four: { type: "streamable-http", url: "https://example.org/mcp", direct: true },
    });
    expect(problems).toEqual([]);
    expect(servers).toEqual({
      one: { command: "npx", args: ["-y", "x"], env: { A: "b" } },
      two: { type: "http", url: "https://example.org/mcp", headers: { A: "b" } },
      three: {
        type: "http",
        url: "https://example.org/mcp",
        disabled: true,
        timeout: 5,
        tools: ["a*"],
      },
      four: { type: "http", url: "https://example.org/mcp", direct: true },
    });
  });

  it.each([
    ["nothing", {}, "needs a command or a url"],
    ["an empty command", { command: "" }, "needs a command"],
    ["another type", { type: "sse", url: "https://example.org" }, '"sse", which is not supported'],
    ["both", { type: "http", url: "https://a.org", command: "x" }, "has a command and a url"],
    ["a text in place of a list", { command: "x", args: "y" }, "args must be a list of texts"],
    ["numbers in env", { command: "x", env: { A: 1 } }, "env must be an object of texts"],
    ["no time", { command: "x", timeout: 0 }, "timeout must be milliseconds"],
    ["a word", "x", "must be an object"],
  ])("with %s are reported", (_what, server, problem) => {
    const { servers, problems } = readMcpServers({ one: server, good: { command: "x" } });
    expect(Object.keys(servers)).toEqual(["good"]);
    expect(problems.join()).toContain(problem);
  });

  it.each([
    ["an object", { docs: { url: "https://a.org" } }, "of openMcp are a list of entries"],
    ["nothing", undefined, 'write servers: [{ name: "docs", scope: "user", config: {'],
    ["no name", [{ config: { command: "x" } }], "has a name, a scope and a config"],
    [
      "flat",
      [{ name: "docs", command: "x" }],
      'server "docs" is reached by belongs into its `config`',
    ],
    [
      "of a type that is not supported",
      [{ name: "docs", scope: "user", config: { type: "sse", url: "https://a.org" } }],
      'The MCP server "docs" has the type "sse", which is not supported: use "http" (streamable HTTP).',
    ],
    ["empty", [{ name: "docs", scope: "user", config: {} }], '"docs" needs a command or a url.'],
  ])(
    "of a program that are %s are an error that says what to write",
    async (_what, given, words) => {
      const options: object = { servers: given, cwd: "/" };
      const opening = openMcp(options as McpOptions);
      await expect(opening).rejects.toMatchObject({ code: "bad_mcp_config" });
      await expect(opening).rejects.toThrow(words);
    },
  );

  it("of a program are at an address with a url alone", () => {
    const docs: McpServerConfig = { url: "https://${HOST}/mcp" };
    expect(isAddress(docs)).toBe(true);
    expect(isAddress({ command: "x" })).toBe(false);
    expect(expandConfig(docs, { HOST: "a.org" })).toEqual({ url: "https://a.org/mcp" });
  });

  it("may have the name of something that every object has", () => {
    const { servers } = readMcpServers(JSON.parse('{"__proto__": {"command": "x"}}'));
    expect(Object.keys(servers)).toEqual(["__proto__"]);
  });

  it("have the values of variables", () => {
    const env = { A: "1", EMPTY: "" };
    expect(expandVariables("${A} ${B:-two} ${EMPTY:-three} ${EMPTY} $A ${", env)).toBe(
      "1 two three  $A ${",
    );
    expect(() => expandVariables("${B}", env)).toThrow("The variable B is not set.");
    const config = { command: "${A}", args: ["${B}"], env: { C: "${A}" }, cwd: "${D}" };
    expect(variablesIn(config)).toEqual(["A", "B", "D"]);
    expect(() => expandConfig({ type: "http", url: "file:///etc/passwd" }, env)).toThrow(
      "begins with http",
    );
  });

  it("use the tools that their filter names", () => {
    expect(isWanted("get_issue", undefined)).toBe(true);
    expect(isWanted("get_issue", ["get_*"])).toBe(true);
    expect(isWanted("get_issue", ["*issue"])).toBe(true);
    expect(isWanted("get_issue", ["get"])).toBe(false);
    expect(isWanted("get_issue", [])).toBe(false);
  });
});

describe("names", () => {
  it("say which server a tool is of", () => {
    expect(serverAliases(["git hub", "git.hub", "a__b", "_x_", "é"])).toEqual([
      "git_hub",
      expect.stringMatching(/^git_hub_[0-9a-f]{6}$/),
      "a_b",
      "x",
      expect.stringMatching(/^[0-9a-f]{6}$/),
    ]);
  });

  it("are short, plain and each of its own", () => {
    const [alias = ""] = serverAliases(["a server with a name that has no end at all"]);
    const long = "x".repeat(100);
    const tools = ["a.b", "a_b", `${long}1`, `${long}2`, "ü", ""];
    const names = toolNames(alias, tools);
    expect(new Set(names).size).toBe(tools.length);
    for (const name of names) expect(name).toMatch(/^mcp__[A-Za-z0-9_-]+$/);
    expect(Math.max(...names.map((name) => name.length))).toBeLessThanOrEqual(MAX_TOOL_NAME_CHARS);
    expect(toolNames(alias, tools)).toEqual(names);
  });
});

describe("a search", () => {
  const tools = [
    { name: "create_issue", description: "Opens a new issue in a repository." },
    { name: "listPullRequests", description: "Lists pull requests." },
    { name: "send_mail", description: "Sends a message to people about an issue." },
    { name: "weather", description: "Forecasts." },
  ];
  const found = (query: string): string[] => ranked(query, tools).map(({ name }) => name);

  it("has what fits best first", () => {
    expect(found("create an issue")[0]).toBe("create_issue");
    expect(found("pull request")[0]).toBe("listPullRequests");
    expect(found("issue")).toEqual(["create_issue", "send_mail"]);
    expect(found("forecast")).toEqual(["weather"]);
  });

  it("has nothing where nothing fits", () => {
    expect(found("")).toEqual([]);
    expect(found("zebra")).toEqual([]);
    expect(ranked("x", [])).toEqual([]);
  });
});
