import type { AgentTool } from "@gyre/agent";
import { TOOL_NAMES } from "@gyre/tools";
import { expect, it } from "vitest";
import { DEFAULT_TOOLS, OTHER_TOOLS } from "../core/tool-lists.ts";
import { selectTools } from "./tool-names.ts";

const mine: AgentTool = {
  name: "mine",
  description: "Mine.",
  parameters: { type: "object" },
  execute: () => "",
};

function tools(named: readonly string[] | undefined, isLenient = false) {
  const warnings: string[] = [];
  const warn = (text: string): void => void warnings.push(text);
  const { own, added } = selectTools({ named, plugins: [mine], isLenient, warn });
  return { own, added: added.map(({ name }) => name), warnings };
}

it("without names there are the usual ones, and all of plugins", () => {
  expect(tools(undefined)).toEqual({ own: DEFAULT_TOOLS, added: ["mine"], warnings: [] });
});

it("names are for ours and for those of plugins", () => {
  expect(tools(["read"])).toEqual({ own: ["read"], added: [], warnings: [] });
  expect(tools(["mine", "read"])).toEqual({ own: ["read"], added: ["mine"], warnings: [] });
});

it("a name that no tool has is left for an error, or reported and passed over", () => {
  expect(tools(["read", "gone"])).toEqual({ own: ["read", "gone"], added: [], warnings: [] });
  expect(tools(["read", "gone"], true)).toEqual({
    own: ["read"],
    added: [],
    warnings: ['There is no tool "gone": it goes on without.'],
  });
});

it("a group is for all of plugins, but for those that are taken away", () => {
  expect(tools(["read", "plugins"])).toEqual({ own: ["read"], added: ["mine"], warnings: [] });
  expect(tools(["read", "plugins", "-mine"])).toEqual({ own: ["read"], added: [], warnings: [] });
  expect(tools(["read", "-raed"]).own).toEqual(["read", "-raed"]);
});

it("all of the usual ones are known", () => {
  expect(DEFAULT_TOOLS.filter((name) => !TOOL_NAMES.includes(name))).toEqual([]);
  expect([...DEFAULT_TOOLS, ...OTHER_TOOLS].sort()).toEqual([...TOOL_NAMES].sort());
});
