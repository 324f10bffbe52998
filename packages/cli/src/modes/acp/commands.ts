import type { AvailableCommand } from "@agentclientprotocol/sdk";
import type { Usage } from "@gyre/ai";
import { type ModelChoice, modelValue } from "../../text/choices.ts";
import {
  COMMAND_ABOUTS,
  COMMAND_HINTS,
  contextText,
  modeText,
  takeModel,
  thinkingText,
  usageText,
} from "../../text/command-text.ts";
import type { CommandRegistry } from "../../extensions/command-registry.ts";
import type { Harness } from "../../harness/harness.ts";

/** What a command is given. */
export interface CommandContext {
  harness: Harness;
  sessionId: string;
  models: readonly ModelChoice[];
  /** Of the whole session. */
  usage: Usage;
  /** Names the session. */
  setTitle: (title: string) => Promise<void>;
}

interface Command {
  description: string;
  /** What to write behind its name. */
  hint?: string;
  /** Throws what to tell the user. */
  run(rest: string, context: CommandContext): string | Promise<string>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  model: {
    description: COMMAND_ABOUTS.model,
    hint: COMMAND_HINTS.model,
    run(rest, { harness, models }) {
      if (rest !== "") return takeModel(rest, harness);
      const current = modelValue(harness.model);
      const others = models.filter(({ value }) => value !== current);
      const listed = others.map(({ value, name }) => `- \`${value}\` ${name}`);
      return [`The model is \`${current}\`.`, ...(listed.length > 0 ? ["", ...listed] : [])].join(
        "\n",
      );
    },
  },
  thinking: {
    description: COMMAND_ABOUTS.thinking,
    hint: COMMAND_HINTS.thinking,
    run: (rest, { harness }) => thinkingText(rest, harness),
  },
  mode: {
    description: COMMAND_ABOUTS.mode,
    hint: COMMAND_HINTS.mode,
    run: (rest, { harness }) => modeText(rest, harness),
  },
  cost: {
    description: COMMAND_ABOUTS.cost,
    run: (_rest, { usage }) => usageText(usage),
  },
  context: {
    description: COMMAND_ABOUTS.context,
    run: (_rest, { harness }) => contextText(harness),
  },
  session: {
    description: COMMAND_ABOUTS.session,
    run(_rest, { harness, sessionId }) {
      const { session } = harness;
      if (!session) return `Session ${sessionId} is not written down.`;
      return `Session ${sessionId}\n\nFile: \`${session.path}\`\n\nIn a terminal: \`gyre --resume ${sessionId}\``;
    },
  },
  title: {
    description: COMMAND_ABOUTS.title,
    hint: COMMAND_HINTS.title,
    async run(rest, { setTitle }) {
      if (rest === "") throw new Error("Write the name behind /title.");
      await setTitle(rest);
      return `This session is called "${rest}" now.`;
    },
  },
};

/** The commands of this program, and of plugins, for an editor's menu. */
export function availableCommands(plugins?: CommandRegistry): AvailableCommand[] {
  const own = Object.entries(COMMANDS).map(([name, command]) => ({ name, ...command }));
  const theirs = (plugins?.list() ?? []).map(({ name, about, hint }) => ({
    name,
    description: about,
    hint,
  }));
  return [...own, ...theirs].map(({ name, description, hint }) => ({
    name,
    description,
    ...(hint !== undefined && { input: { hint } }),
  }));
}

/** Runs one; nothing if there is none of this name, and it is a prompt like others. */
export async function runCommand(
  { name, rest }: { name: string; rest: string },
  context: CommandContext,
): Promise<string | undefined> {
  const { commands } = context.harness;
  const isOwn = Object.hasOwn(COMMANDS, name);
  if (!isOwn && !commands?.has(name)) return undefined;
  try {
    return isOwn ? await COMMANDS[name]?.run(rest, context) : await commands?.run(name, rest);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
