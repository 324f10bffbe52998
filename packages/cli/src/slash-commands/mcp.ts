import { type CommandPart, orAborted, text } from "@gyre/coding/internal/conversation/command";
import { changedTools, mcpStateText, NO_SERVERS, trustedText } from "../text/mcp-text.ts";
import { asCode } from "../text/markdown-text.ts";
import type { SlashCommand } from "./command-context.ts";

const TRUST = "trust";

/** `/mcp`: the servers and what they offer. `/mcp trust NAME`: takes changed tools as they are. */
export const mcpCommand: SlashCommand = {
  name: "mcp",
  about: "show MCP servers, or trust the changed tools of one",
  hint: `${TRUST} name of a server`,
  allowWhileRunning: true,
  async run(rest, { harness: { mcp }, signal }) {
    const [verb = "", ...words] = rest.split(/\s+/);
    const name = words.join(" ");
    if (verb !== "" && (verb !== TRUST || name === "")) {
      throw new Error(`/mcp takes nothing, or "${TRUST}" and the name of a server.`);
    }
    if (!mcp) return NO_SERVERS;
    if (verb === TRUST) {
      const changes = await mcp.accept(name);
      const tools = changedTools(changes).flatMap((tool): CommandPart[] => [
        text(`${asCode(tool.name)} (${tool.what})`),
        { type: "code", text: tool.says },
      ]);
      return { show: [...tools, text(trustedText(name, changes))] };
    }
    // Servers that were not used yet are not started yet: nothing is known of them.
    await orAborted(mcp.connect(), signal);
    signal.throwIfAborted();
    const rows = mcp
      .status()
      .map((server) => [
        { code: server.name },
        server.kind,
        server.scope,
        mcpStateText(server, `/mcp ${TRUST}`),
      ]);
    return { show: [{ type: "table", columns: ["server", "kind", "from", "state"], rows }] };
  },
  complete: (_rest, { harness: { mcp } }) =>
    (mcp?.status() ?? []).map(({ name }) => ({
      value: `${TRUST} ${name}`,
      label: `${TRUST} ${name}`,
    })),
};
