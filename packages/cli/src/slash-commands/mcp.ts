import { type CommandPart, orAborted, text } from "@gyre/coding/internal/conversation/command";
import type { Mcp } from "@gyre/mcp";
import { changedTools, mcpStateText, NO_SERVERS, plain, trustedText } from "../text/mcp-text.ts";
import { asCode } from "../text/markdown-text.ts";
import type { SlashCommand } from "./command-context.ts";

const TRUST = "trust";
const PROMPT = "prompt";
const PROMPTS = "prompts";

/**
 * `/mcp`: the servers and what they offer. `/mcp trust NAME`: takes changed tools as they are. `/mcp prompts`:
 * what servers have for their users; `/mcp prompt SERVER NAME KEY=VALUE`: sends one.
 */
export const mcpCommand: SlashCommand = {
  name: "mcp",
  about: "show MCP servers, trust changed tools of one, or send a prompt of one",
  hint: `${TRUST} NAME, ${PROMPTS}, or ${PROMPT} SERVER NAME KEY=VALUE`,
  allowWhileRunning: true,
  async run(rest, { harness: { mcp }, signal }) {
    const [verb = "", ...words] = rest.split(/\s+/);
    const name = words.join(" ");
    const isKnown =
      rest === "" ||
      (verb === TRUST && name !== "") ||
      (verb === PROMPTS && name === "") ||
      (verb === PROMPT && words.length >= 2);
    if (!isKnown) {
      throw new Error(
        `/mcp takes nothing, "${TRUST}" and the name of a server, "${PROMPTS}", or "${PROMPT}" with a server, a name and KEY=VALUE for each argument.`,
      );
    }
    if (!mcp) return NO_SERVERS;
    if (verb === PROMPTS) return { show: [await listPrompts(mcp, signal)] };
    if (verb === PROMPT) return { prompt: await readPrompt(mcp, words, signal) };
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

async function listPrompts(mcp: Mcp, signal: AbortSignal): Promise<CommandPart> {
  const prompts = await orAborted(mcp.prompts(), signal);
  signal.throwIfAborted();
  if (!prompts || prompts.length === 0) return text("The MCP servers have no prompts.");
  const rows = prompts.map(({ server, name, description = "", arguments: args }) => [
    { code: server },
    { code: plain(name) },
    args.map((one) => `${one.name}${one.isRequired ? "" : "?"}`).join(" "),
    description,
  ]);
  return { type: "table", columns: ["server", "prompt", "arguments", ""], rows };
}

/** What the user says by choosing a prompt. Pictures in it are left out: a command sends text. */
async function readPrompt(
  mcp: Mcp,
  [server = "", name = "", ...given]: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  const content = await mcp.prompt(server, name, readArguments(given), signal);
  const texts = content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  if (texts.length === 0) throw new Error(`The prompt "${name}" of "${server}" has no text.`);
  return texts.join("\n\n");
}

/** `day=Monday mood=very tired`: a value goes on until the next name. */
function readArguments(words: readonly string[]): Record<string, string> {
  const found: [string, string][] = [];
  for (const word of words) {
    const [, key, value = ""] = /^([\w-]+)=([^]*)$/.exec(word) ?? [];
    const last = found.at(-1);
    if (key !== undefined) found.push([key, value]);
    else if (last) last[1] += ` ${word}`;
    else throw new Error(`"${word}" is no argument: write KEY=VALUE.`);
  }
  return Object.fromEntries(found);
}
