import type { AvailableCommand } from "@agentclientprotocol/sdk";
import { errorMessage } from "@gyre/ai";
import {
  type CommandPart,
  type CommandResult,
  findCommand,
  type Question,
  runCommand,
  text,
} from "@gyre/coding/internal/conversation/command";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { SlashContext } from "../../slash-commands/command-context.ts";
import { findEditorCommands } from "../../slash-commands/find-commands.ts";
import { asCode, partsMarkdown } from "../../text/markdown-text.ts";

/** Editors show Markdown in a column of about this width. */
const COLUMNS = 80;

/** The commands of this program, and of plugins, for an editor's menu. */
export function availableCommands(harness: Pick<Harness, "commands">): AvailableCommand[] {
  return findEditorCommands(harness).map(({ name, about, hint }) => ({
    name,
    description: about,
    ...(hint !== undefined && { input: { hint } }),
  }));
}

/** What became of a slash command: Markdown for the user, also of an error, and what to ask the model. */
export interface SlashOutcome {
  markdown: string;
  prompt?: string;
  /** The model is asked again from the transcript as it is. */
  retry?: boolean;
}

/** Runs a slash command. Undefined: there is none of this name, and it is a prompt like others. */
export async function runSlashCommand(
  { name, rest }: { name: string; rest: string },
  given: Omit<SlashContext, "choose" | "commands" | "help" | "show">,
): Promise<SlashOutcome | undefined> {
  const commands = findEditorCommands(given.harness);
  const command = findCommand(name, commands);
  if (!command) return undefined;
  const shown: CommandPart[] = [];
  const context: SlashContext = {
    ...given,
    commands: () => commands,
    help: [],
    show: (...parts) => void shown.push(...parts),
    choose: (question) => {
      shown.push(listChoices(question));
      return Promise.resolve(undefined);
    },
  };
  try {
    const result = await runCommand(command, rest, context);
    const done: CommandResult = result === "stopped" ? { show: [text("Stopped.")] } : result;
    const { show = [], prompt, retry } = done;
    const markdown = partsMarkdown([...shown, ...show], COLUMNS);
    return { markdown, ...(retry && { retry }), ...(prompt !== undefined && { prompt }) };
  } catch (error) {
    return { markdown: errorMessage(error) };
  }
}

/** A command cannot ask in the middle of a prompt: it lists what can be written behind its name. */
function listChoices({ title, choices }: Question<unknown>): CommandPart {
  const lines = choices.map(({ label, detail }) => `- ${asCode(label)} ${detail ?? ""}`.trimEnd());
  return text([title, "", ...lines].join("\n"));
}
