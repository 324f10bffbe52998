import { nearNames } from "@gyre/ai";
import { findCommand, parseCommand, runCommand } from "@gyre/coding/internal/conversation/command";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import { UsageError } from "../../core/exit-codes.ts";
import type { Environment } from "../../core/io.ts";
import type { Setup } from "../../core/setup.ts";
import { builtinCommands } from "../../slash-commands/builtin.ts";
import type { SlashCommand } from "../../slash-commands/command-context.ts";
import { findCommands } from "../../slash-commands/find-commands.ts";

/** Commands of the program that are prompts. */
const PROMPTS: ReadonlySet<string> = new Set(["init", "review"]);

export interface PromptCommandOptions {
  harness: Harness;
  setup: Setup;
  env: Environment;
  signal: AbortSignal;
}

/** The slash commands that are prompts: those of files, skills and plugins, and a few of the program. */
export async function listPromptCommands(
  options: Omit<PromptCommandOptions, "signal">,
): Promise<readonly SlashCommand[]> {
  const own = new Set(builtinCommands);
  const all = await findCommands("terminal", options);
  return all.filter((command) => !own.has(command) || PROMPTS.has(command.name));
}

/**
 * The prompt that `/name rest` stands for; any other text as it is. Rejects where there is no such command, and where
 * what it runs is not allowed.
 */
export async function expandPrompt(text: string, options: PromptCommandOptions): Promise<string> {
  const typed = parseCommand(text);
  if (!typed) return text;
  const { env, harness, setup, signal } = options;
  const commands = await listPromptCommands(options);
  const command = findCommand(typed.name, commands);
  if (!command) throw unknownCommand(typed.name, commands);
  const result = await runCommand(command, typed.rest, {
    ...{ harness, setup, env, signal, help: [] },
    commands: () => commands,
    models: async () => [],
    choose: async () => undefined,
    show: () => {},
  });
  if (result === "stopped" || result.prompt === undefined) {
    throw new UsageError(`/${command.name} is no prompt: it is for a conversation.`);
  }
  return result.prompt;
}

function unknownCommand(name: string, commands: readonly SlashCommand[]): UsageError {
  const names = commands.flatMap((each) => [each.name, ...(each.aliases ?? [])]);
  const near = nearNames(name, names);
  const known = (near.length > 0 ? near : commands.map((each) => each.name)).map(
    (each) => `/${each}`,
  );
  const isOther = findCommand(name, builtinCommands) !== undefined;
  const what = isOther
    ? `/${name} is for a conversation, not for one prompt.`
    : `There is no command "/${name}".`;
  const hint =
    near.length > 0 ? `Did you mean ${known.join(" or ")}?` : `There are ${known.join(", ")}.`;
  return new UsageError(`${what} ${hint} A text that begins with a blank is sent as it is.`);
}
