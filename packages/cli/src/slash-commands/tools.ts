import type { AgentTool } from "@gyre/agent";
import type { ToolRegistry } from "@gyre/tools";
import { UsageError } from "../core/exit-codes.ts";
import { isToolChange } from "@gyre/coding/internal/core/tool-lists";
import type { SlashCommand, SlashContext } from "./command-context.ts";
import { CACHE_NOTE } from "./model.ts";

/** `/tools [NAME]`: which tools the model has; a name turns one on or off, +NAME and -NAME say which. */
export const toolsCommand: SlashCommand = {
  name: "tools",
  about: "show the tools, turn them on and off",
  hint: "name of a tool; +name, -name",
  async run(rest, context) {
    const { harness } = context;
    const { agent, toolset } = harness;
    const tools = toolset.registry.list();
    if (tools.length === 0 && rest === "") {
      return "There are no tools. `/tools +read` adds one; `--tools` or the settings name those to start with.";
    }
    const before = new Set(agent.state.tools.map(({ name }) => name));
    const wanted =
      rest === ""
        ? await chooseTools(tools, before, context)
        : isToolChange(rest)
          ? change(before, rest, toolset.registry)
          : toggle(before, toolset.registry.get(rest).name);
    if (isSame(before, wanted)) return undefined;
    await harness.setTools([...wanted]);
    const names = toolset.registry
      .list()
      .map(({ name }) => name)
      .filter((name) => wanted.has(name));
    const isPaid = agent.state.messages.length > 0;
    return `The model has ${names.length > 0 ? names.join(", ") : "no tools"} now.${isPaid ? ` ${CACHE_NOTE}` : ""}`;
  },
  complete: (_rest, { harness }) =>
    harness.toolset.registry
      .list()
      .map((tool) => ({ value: tool.name, label: tool.name, detail: firstSentence(tool) })),
};

/** Asks until the list is left. */
async function chooseTools(
  tools: readonly AgentTool[],
  before: ReadonlySet<string>,
  context: SlashContext,
): Promise<ReadonlySet<string>> {
  let wanted = before;
  for (let start = 0; ;) {
    const chosen = await context.choose({
      title: "Tools of the model. Enter turns one on or off, Esc is the end.",
      choices: tools.map((tool) => ({
        value: tool.name,
        label: `${wanted.has(tool.name) ? "[x]" : "[ ]"} ${tool.name}`,
        detail: firstSentence(tool),
      })),
      start,
    });
    if (chosen === undefined) return wanted;
    start = tools.findIndex(({ name }) => name === chosen);
    wanted = toggle(wanted, chosen);
  }
}

/** "+grep,-shell": one more and one less. */
function change(
  names: ReadonlySet<string>,
  changes: string,
  registry: ToolRegistry,
): ReadonlySet<string> {
  const next = new Set(names);
  for (const each of changes.split(/[\s,]+/)) {
    const name = each.slice(1);
    if (each.startsWith("+")) next.add(name);
    else if (!each.startsWith("-")) throw new UsageError(`"${each}" needs + or - before it.`);
    else next.delete(registry.get(name).name);
  }
  return next;
}

function toggle(names: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const next = new Set(names);
  if (!next.delete(name)) next.add(name);
  return next;
}

function isSame(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((name) => other.has(name));
}

/** The first sentence of the description that the model gets. */
function firstSentence({ description }: AgentTool): string {
  return /^[^]*?[.!?](?=\s|$)/.exec(description)?.[0] ?? description;
}
