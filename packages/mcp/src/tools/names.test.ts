import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { MAX_TOOL_NAME_CHARS, serverAliases, toolNames } from "./names.ts";

describe("names of tools", () => {
  it("are all different, also where a server has foreseen how they are made so", () => {
    const mark = createHash("sha256").update("a_b").digest("hex").slice(0, 6);
    const names = toolNames("s", [`a_b_${mark}`, "a.b", "a_b", "x".repeat(10_000), ""]);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^mcp__s__[\w-]+$/);
    expect(Math.max(...names.map(({ length }) => length))).toBeLessThanOrEqual(MAX_TOOL_NAME_CHARS);
  });
});

describe("names of servers", () => {
  it("are all different, too", () => {
    const mark = createHash("sha256").update("a b").digest("hex").slice(0, 6);
    const aliases = serverAliases([`a_b_${mark}`, "a_b", "a b", "a.b"]);
    expect(new Set(aliases).size).toBe(aliases.length);
  });
});
