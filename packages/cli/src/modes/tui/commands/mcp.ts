import { changedTools, mcpStateText, NO_SERVERS, trustedText } from "../../../mcp/text.ts";
import type { TerminalCommand } from "../ui/ui.ts";
import { orStopped } from "../app/work.ts";
import { cell, codeBlock, codeCell, table } from "./markdown-text.ts";
import { asCode } from "./session-words.ts";

const TRUST = "trust";

/** `/mcp`: the servers and what they offer. `/mcp trust NAME`: takes changed tools as they are. */
export const mcpCommand: TerminalCommand = {
  name: "mcp",
  about: "show MCP servers, or trust the changed tools of one",
  hint: `${TRUST} name of a server`,
  anytime: true,
  async run(rest, { harness: { mcp }, signal, ui }) {
    const [verb = "", ...words] = rest.split(/\s+/);
    const name = words.join(" ");
    if (verb !== "" && (verb !== TRUST || name === "")) {
      throw new Error(`/mcp takes nothing, or "${TRUST}" and the name of a server.`);
    }
    if (!mcp) {
      ui.say(NO_SERVERS);
      return;
    }
    if (verb === TRUST) {
      const changes = await mcp.accept(name);
      const tools = changedTools(changes).map(
        (tool) => `${asCode(tool.name)} (${tool.what})\n\n${codeBlock(tool.says)}`,
      );
      ui.say([...tools, trustedText(name, changes)].join("\n\n"));
      return;
    }
    // What is not used yet is not started yet, and nothing is known of it.
    await orStopped(mcp.connect(), signal);
    signal.throwIfAborted();
    const rows = mcp
      .status()
      .map((server) => [
        codeCell(server.name),
        server.kind,
        cell(server.scope),
        cell(mcpStateText(server, `/mcp ${TRUST}`)),
      ]);
    ui.say(table(["server", "kind", "from", "state"], rows));
  },
  complete: (_rest, { harness: { mcp } }) =>
    (mcp?.status() ?? []).map(({ name }) => ({
      value: `${TRUST} ${name}`,
      label: `${TRUST} ${name}`,
    })),
};
