import { readMcpServers } from "@gyre/tools/mcp";

/** All that is wrong with the servers in a file. */
export function mcpProblems(servers: Readonly<Record<string, unknown>>): readonly string[] {
  return readMcpServers(servers).problems;
}
