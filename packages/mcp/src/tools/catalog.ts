import type { ToolPresentation } from "@gyre/agent";

/** The tool by which a model finds tools of servers that are not in its list. */
export const TOOL_SEARCH = "tool_search";
/** The tool by which a model calls what `tool_search` found. */
export const MCP_CALL = "mcp_call";

const PREFIX = "mcp__";

/** Whether a tool has this name because it comes from a server. */
export function isMcpToolName(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** How calls of our own tools are shown, by the name of the tool. */
export const MCP_PRESENTATIONS: Readonly<
  Record<typeof TOOL_SEARCH | typeof MCP_CALL, ToolPresentation>
> = {
  [TOOL_SEARCH]: {
    kind: "search",
    verb: "Find tools:",
    title: (args) => textOf(args["query"]),
  },
  [MCP_CALL]: {
    kind: "other",
    verb: "",
    title: (args) => textOf(args["tool"]),
    unwrap(args) {
      const name = textOf(args["tool"]);
      const given = args["arguments"];
      const isRecord = typeof given === "object" && given !== null && !Array.isArray(given);
      return name === "" ? undefined : { name, args: isRecord ? { ...given } : {} };
    },
  },
};

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** How calls of a tool of ours are shown. Undefined for any other tool. */
export function findMcpPresentation(name: string): ToolPresentation | undefined {
  return name === TOOL_SEARCH || name === MCP_CALL ? MCP_PRESENTATIONS[name] : undefined;
}
