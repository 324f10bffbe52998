import type { McpServer } from "@agentclientprotocol/sdk";
import type { McpServerConfig, McpServerEntry } from "@gyre/mcp";
import { EDITOR_SCOPE } from "@gyre/coding/internal/mcp/tools";

/** The servers that an editor passes on, and the names of those that cannot be used. */
export function editorServers(given: readonly McpServer[]): {
  servers: McpServerEntry[];
  unusable: string[];
} {
  const servers: McpServerEntry[] = [];
  const unusable: string[] = [];
  for (const server of given) {
    const config = parseConfig(server);
    if (config) {
      // An editor has filled in what it wants filled in.
      servers.push({ name: server.name, config, scope: EDITOR_SCOPE, isLiteral: true });
    } else unusable.push(server.name);
  }
  return { servers, unusable };
}

function parseConfig(server: McpServer): McpServerConfig | undefined {
  if ("command" in server) {
    const { command, args, env } = server;
    return { command, args, env: record(env) };
  }
  if (server.type !== "http") return undefined;
  return { type: "http", url: server.url, headers: record(server.headers) };
}

function record(pairs: readonly { name: string; value: string }[]): Record<string, string> {
  return Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
}
