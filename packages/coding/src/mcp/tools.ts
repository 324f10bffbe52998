import { isMcpToolName, MCP_CALL, TOOL_SEARCH } from "@gyre/mcp/catalog";
import { MCP_GROUP } from "../core/tool-lists.ts";

/** The scope of servers of the user's own settings. */
export const USER_SCOPE = "user";
/** The scope of servers that an editor passes on. */
export const EDITOR_SCOPE = "editor";
/** The scope of servers that the program gives that has the agent. */
export const PROGRAM_SCOPE = "program";

const OURS: ReadonlySet<string> = new Set([MCP_GROUP, TOOL_SEARCH, MCP_CALL]);

/** Whether a name in a list of tools is about MCP servers. What is said here is loaded at every start. */
export function isMcpTool(name: string): boolean {
  return OURS.has(name) || isMcpToolName(name);
}

/** Whether the tools that are set have those of MCP servers among them. */
export function wantsMcp(tools: readonly string[] | undefined): boolean {
  return tools === undefined || tools.some(isMcpTool);
}
