import type { AgentTool } from "@gyre/agent";
import type { CommandWorld, TerminalCommand } from "../ui/ui.ts";
import { CACHE_NOTE } from "./model.ts";

/** `/tools [NAME]`: which tools the model has; a name turns one on or off. */
export const toolsCommand: TerminalCommand = {
  name: "tools",
  about: "show the tools, turn them on and off",
  hint: "name of a tool",
  async run(rest, world) {
    const { agent, toolset } = world.harness;
    const tools = toolset.registry.list();
    if (tools.length === 0) {
      world.ui.say("There are no tools. `--tools` or the settings name those to start with.");
      return;
    }
    const before = new Set(agent.state.tools.map(({ name }) => name));
    const wanted =
      rest === ""
        ? await toggled(tools, before, world)
        : switched(before, toolset.registry.get(rest).name);
    if (isSame(before, wanted)) return;
    await world.harness.setTools([...wanted]);
    const names = tools.map(({ name }) => name).filter((name) => wanted.has(name));
    const said = `The model has ${names.length > 0 ? names.join(", ") : "no tools"} now.`;
    world.ui.say(agent.state.messages.length > 0 ? `${said} ${CACHE_NOTE}` : said);
  },
  complete: (_rest, { harness }) =>
    harness.toolset.registry
      .list()
      .map((tool) => ({ value: tool.name, label: tool.name, detail: aboutOf(tool) })),
};

/** Asks until the list is left. */
async function toggled(
  tools: readonly AgentTool[],
  before: ReadonlySet<string>,
  { ui }: CommandWorld,
): Promise<ReadonlySet<string>> {
  let wanted = before;
  for (let start = 0; ;) {
    const chosen = await ui.choose({
      title: "Tools of the model. Enter turns one on or off, Esc is the end.",
      choices: tools.map((tool) => ({
        value: tool.name,
        label: `${wanted.has(tool.name) ? "[x]" : "[ ]"} ${tool.name}`,
        detail: aboutOf(tool),
      })),
      start,
    });
    if (chosen === undefined) return wanted;
    start = tools.findIndex(({ name }) => name === chosen);
    wanted = switched(wanted, chosen);
  }
}

function switched(names: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const next = new Set(names);
  if (!next.delete(name)) next.add(name);
  return next;
}

function isSame(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((name) => other.has(name));
}

/** The first sentence of what a model is told. */
function aboutOf({ description }: AgentTool): string {
  return /^[^]*?[.!?](?=\s|$)/.exec(description)?.[0] ?? description;
}
