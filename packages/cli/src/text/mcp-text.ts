import { sanitize } from "@gyre/tools";
import type { McpChanges, McpServerStatus } from "@gyre/mcp";

/** As much as a model gets. */
const MAX_SHOWN_CHARS = 2_000;
const MAX_SCHEMA_CHARS = 12_000;

/** What a server has, or what is wrong with it. `trust` is how its changed tools are trusted. */
export function mcpStateText(
  { name, state, tools, held, problem, lastWords, needsLogin }: McpServerStatus,
  trust: string,
): string {
  if (needsLogin) return `wants a login: gyre mcp login ${plain(name)}`;
  if (problem !== undefined) {
    return plain(`${problem}${lastWords === undefined ? "" : ` It said: ${lastWords}`}`);
  }
  if (state !== "ready") return state;
  const changed = held.length > 0 ? `; ${held.length} changed: ${trust} ${plain(name)}` : "";
  return `${tools.length} ${tools.length === 1 ? "tool" : "tools"}${changed}`;
}

/** A tool that is not as it was. */
export interface ChangedTool {
  name: string;
  what: "new" | "changed";
  /** All that a model reads of it, safe to show. */
  says: string;
}

export function changedTools({ tools, added }: McpChanges): ChangedTool[] {
  return tools.map(({ name, description = "", inputSchema }) => {
    // A model reads the parameters, and all that is said of them, as well.
    const parameters = `parameters: ${JSON.stringify(inputSchema).slice(0, MAX_SCHEMA_CHARS)}`;
    const says = `${description.slice(0, MAX_SHOWN_CHARS)}\n${parameters}`;
    return {
      name: plain(name),
      what: added.includes(name) ? "new" : "changed",
      says: sanitize(says, { exact: true }),
    };
  });
}

/** What has come of trusting a server's tools. */
export function trustedText(server: string, { tools }: McpChanges): string {
  return `The tools of ${plain(server)} are ${tools.length === 0 ? "still" : "now"} trusted as they are.`;
}

/** Where no server is set. */
export const NO_SERVERS =
  'No MCP servers are set: "mcp" in the settings, or .mcp.json of a project.';

/** A text of others on one line. */
export function plain(text: string): string {
  return sanitize(text, { keepNewlines: false });
}
