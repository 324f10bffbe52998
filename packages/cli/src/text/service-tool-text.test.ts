import type { ServiceToolContent, TextContent } from "@gyre/ai";
import { describe, expect, it } from "vitest";
import { messageText } from "./session-text.ts";
import { listCitedSources, serviceToolText } from "./service-tool-text.ts";

function tool(name: string, more: Partial<ServiceToolContent>): ServiceToolContent {
  return { type: "serviceTool", id: "1", name, ...more };
}

describe("a tool that the service ran", () => {
  it("is a search with what was found", () => {
    const found = Array.from({ length: 7 }, (_, n) => ({
      ...{ type: "web_search_result", url: `https://t.example/${n}`, title: `Tea ${n}` },
    }));
    expect(serviceToolText(tool("web_search", { input: { query: "tea" } }))).toEqual({
      title: 'web_search "tea"',
      lines: [],
    });
    expect(serviceToolText(tool("web_search", { output: found.slice(0, 1) })).lines).toEqual([
      "1 result",
      "- Tea 0: https://t.example/0",
    ]);
    expect(serviceToolText(tool("web_search", { output: found })).lines).toHaveLength(7);
    expect(serviceToolText(tool("web_search", { output: found })).lines.at(-1)).toBe(
      "- and 2 more",
    );
  });

  it("is code with its output, cut where it is long", () => {
    const code = "a = 1\nprint(a)";
    const output = { stdout: "1\n".repeat(20), stderr: "", return_code: 0 };
    const { lines } = serviceToolText(tool("code_execution", { input: { code }, output }));
    expect(lines.slice(0, 3)).toEqual(["a = 1", "print(a)", "> 1"]);
    expect(lines.at(-1)).toBe("> (12 more lines)");
  });

  it("says what went wrong, and nothing of it can change the terminal", () => {
    const output = { type: "web_search_tool_result_error", error_code: "max_uses_exceeded" };
    expect(serviceToolText(tool("web_search", { output })).lines).toEqual([
      "failed: max_uses_exceeded",
    ]);
    const { title } = serviceToolText(tool("web_search", { input: { query: "a\u001b[2Jb\nc" } }));
    expect(title).not.toContain("\u001b");
    expect(title).not.toContain("\n");
  });
});

describe("citations", () => {
  const cited: TextContent = {
    type: "text",
    text: "Tea is old.",
    citations: [
      { url: "https://t.example/", title: "Tea\u001b[31m" },
      { title: "report.pdf", page: 2 },
    ],
  };

  it("are numbered notes in a transcript", () => {
    const from = { api: "a", provider: "p", model: "m" };
    const text = messageText({
      ...{ role: "assistant", content: [cited], ...from, usage: {}, stopReason: "stop" },
      timestamp: 0,
    });
    expect(text).toContain("Tea is old. [1, 2]");
    expect(text).toContain("[2] report.pdf, page 2");
    expect(listCitedSources([cited])[0]).toMatch(/^\[1\] Tea.*: https:\/\/t\.example\/$/);
    expect(text).not.toContain("\u001b");
  });
});
