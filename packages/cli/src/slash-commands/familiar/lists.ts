import { homedir } from "node:os";
import { AGENT_KINDS } from "@gyre/tools";
import { type CommandResult, text } from "@gyre/coding/internal/conversation/command";
import type { GuidanceOptions } from "@gyre/coding/internal/guidance/instructions";
import { configFolder } from "@gyre/coding/internal/settings/file";
import { claudeFolder } from "@gyre/coding/internal/settings/project-file";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import type { FamiliarContext } from "./context.ts";

type Rows = readonly (readonly [string, string])[];

/** `/todos`: the steps that the model has written down. */
export function showTodos({ harness }: FamiliarContext): CommandResult {
  const { items } = harness.toolset.todos;
  const states = { done: "done", in_progress: "now", pending: "to do" };
  const rows = items.map(({ content, status }) => [states[status], oneLine(content)] as const);
  return table(["", "step"], rows, "The model has written down no steps.");
}

/** `/skills`: what it can read up on, and how to use one. */
export function showSkills({ harness }: FamiliarContext): CommandResult {
  const rows = (harness.skills ?? []).map(
    ({ name, description }) => [`/skill:${name}`, oneLine(description)] as const,
  );
  return table(["skill", ""], rows, "There are no skills: `.gyre/skills/NAME/SKILL.md` is one.");
}

/** `/agents`: the kinds of sub-agents, those of files too. */
export async function showAgents(context: FamiliarContext): Promise<CommandResult> {
  const { findAgentFiles } = await import("@gyre/coding/internal/guidance/agent-files");
  const files = await findAgentFiles(locate(context));
  const named = new Set(files.map(({ name }) => name));
  const rows = [...AGENT_KINDS.filter(({ name }) => !named.has(name)), ...files].map(
    ({ name, description }) => [name, oneLine(description)] as const,
  );
  const how = text("The model uses them by itself. `.gyre/agents/NAME.md` describes another.");
  const { show = [] } = table(["sub-agent", ""], rows, "");
  return { show: [...show, how] };
}

/** `/hooks`: what runs at which event. */
export async function showHooks({ setup }: FamiliarContext): Promise<CommandResult> {
  const { parseHooks, shownCommand } = await import("@gyre/coding/internal/settings/hooks");
  const { hooks } = parseHooks(setup.settings?.hooks ?? {});
  const rows = hooks.map(({ event, command }) => [event, oneLine(shownCommand(command))] as const);
  return table(["event", "runs"], rows, 'There are no hooks: "hooks" in the settings has them.');
}

/** `/memory`: the files that say how to work here. */
export async function showMemory(context: FamiliarContext): Promise<CommandResult> {
  const { readInstructions } = await import("@gyre/coding/internal/guidance/instructions");
  const files =
    context.setup.settings?.instructionFiles === false ? [] : readInstructions(locate(context));
  const rows = files.map(
    ({ path, text: content }) => [oneLine(path), `${content.split("\n").length} lines`] as const,
  );
  const { show = [] } = table(["file", ""], rows, "There is none.");
  return { show: [...show, text("`# text` adds a line to one, and `/init` has it write one.")] };
}

function locate({ env, setup }: FamiliarContext): GuidanceOptions {
  const home = homedir();
  const config = configFolder(env, home);
  return { cwd: setup.cwd, home, config, claude: claudeFolder(env, home), warn: () => {} };
}

function table(columns: readonly string[], rows: Rows, nothing: string): CommandResult {
  if (rows.length === 0) return { show: [text(nothing)] };
  return {
    show: [{ type: "table", columns, rows: rows.map(([code, rest]) => [{ code }, rest]) }],
  };
}
