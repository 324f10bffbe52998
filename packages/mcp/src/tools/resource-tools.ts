import type { Resource } from "@modelcontextprotocol/client";
import type { AgentToolResult } from "@gyre/agent";
import { cutText } from "@gyre/ai/text";
import type { CallOptions, ListedTool, McpConnection } from "../client/connection.ts";
import { failed } from "./mcp-tool.ts";
import { fromServer, type ResultOptions, toToolResult } from "./result.ts";

/** Of the description of one resource in a list. */
const MAX_ABOUT_CHARS = 200;
/** Of a list; what is left out is counted. */
const MAX_LIST_CHARS = 20_000;

type Run = (
  connection: McpConnection,
  args: Record<string, unknown>,
  options: CallOptions & ResultOptions,
) => Promise<AgentToolResult>;

/** A tool of ours for a server that has resources. It is found and called as those of the server are. */
export interface ResourceTool {
  listed: ListedTool;
  run: Run;
}

/** In our words: what the server says of its resources is in the results. */
export const RESOURCE_TOOLS: readonly ResourceTool[] = [
  {
    listed: {
      name: "list_resources",
      description:
        "List the resources of this server (documents, records, files) with their addresses.",
      inputSchema: { type: "object", properties: {} },
    },
    run: async (connection, _args, { server }) => {
      const [resources, templates] = await Promise.all([
        connection.resources(),
        connection.resourceTemplates(),
      ]);
      const lines = [
        ...resources.map(({ uri, ...about }) => describe(uri, about)),
        ...templates.map(({ uriTemplate, ...about }) => describe(uriTemplate, about)),
      ];
      if (lines.length === 0) return failed("The server lists no resources.");
      return { content: [fromServer(server, join(lines))] };
    },
  },
  {
    listed: {
      name: "read_resource",
      description: "Read a resource of this server by its address.",
      inputSchema: {
        type: "object",
        properties: { uri: { type: "string", description: "As list_resources shows it" } },
        required: ["uri"],
      },
    },
    run: async (connection, { uri }, options) => {
      const { contents } = await connection.read(String(uri), options);
      const content = contents.map((resource) => ({ type: "resource" as const, resource }));
      return toToolResult({ content }, options);
    },
  },
];

function describe(
  address: string,
  { name, title, description }: Pick<Resource, "name" | "title" | "description">,
): string {
  const about = cutText((description ?? "").replaceAll(/\s+/g, " "), MAX_ABOUT_CHARS);
  return [address, title ?? name, about].filter((part) => part !== "").join(" - ");
}

/** Whole lines, as many as fit. */
function join(lines: readonly string[]): string {
  let chars = 0;
  const shown = lines.filter((line) => (chars += line.length + 1) <= MAX_LIST_CHARS);
  const left = lines.length - shown.length;
  return [...shown, ...(left > 0 ? [`[${left} more are left out]`] : [])].join("\n");
}
