import { describe, expect, it } from "vitest";
import { addToolLists, applyToolChanges, DEFAULT_TOOLS } from "./tool-lists.ts";

const GROUPS = ["skills", "plugins", "mcp"];

describe("a list of tools", () => {
  it("has git, sub-agents and fetch in it unless something else is said", () => {
    expect(DEFAULT_TOOLS).toEqual(expect.arrayContaining(["git", "task", "fetch"]));
  });

  it("of names is taken as it is", () => {
    expect(applyToolChanges(["read", "grep"])).toEqual(["read", "grep"]);
    expect(applyToolChanges([])).toEqual([]);
  });

  it("of changes is for the usual tools, with those of skills, plugins and MCP servers", () => {
    expect(applyToolChanges(["+ls"])).toEqual([...DEFAULT_TOOLS, ...GROUPS, "ls"]);
    expect(applyToolChanges(["-git"])).toEqual([
      ...DEFAULT_TOOLS.filter((name) => name !== "git"),
      ...GROUPS,
    ]);
  });

  it("takes away groups, and keeps the names of plugins' tools that are taken away", () => {
    expect(applyToolChanges(["-mcp", "-skill", "-theirs"])).toEqual([
      ...DEFAULT_TOOLS,
      "plugins",
      "-theirs",
    ]);
  });

  it("is changed by a later one of changes, and replaced by one of names", () => {
    expect(applyToolChanges(addToolLists(["read", "grep"], ["+git", "-grep"]))).toEqual([
      "read",
      "git",
    ]);
    expect(addToolLists(["read", "grep"], ["write"])).toEqual(["write"]);
    expect(addToolLists(["+git"], [])).toEqual([]);
  });
});
