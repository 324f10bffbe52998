import type { AvailableCommand } from "@agentclientprotocol/sdk";
import { contextBreakdown } from "@gyre/agent";
import { totalTokens, type Usage } from "@gyre/ai";
import type { ModelChoice } from "./acp-host.ts";
import { isMode, isThinkingLevel, MODES, modelValue } from "./acp-config.ts";
import type { CommandRegistry } from "../extensions/command-registry.ts";
import { dollars } from "../dollars.ts";
import type { Harness } from "../harness/harness.ts";

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
    description: "show the models, or take another one",
    hint: "name of a model",
    async run(rest, { harness, models }) {
      if (rest !== "") return `The model is ${modelValue(await harness.setModel(rest))} now.`;
      const current = modelValue(harness.model);
      const others = models.filter(({ value }) => value !== current);
      const listed = others.map(({ value, name }) => `- \`${value}\` ${name}`);
      return [`The model is \`${current}\`.`, ...(listed.length > 0 ? ["", ...listed] : [])].join(
        "\n",
      );
    },
  },
  thinking: {
    description: "show how much it thinks, or change that",
    hint: "off, minimal, low, medium, high or xhigh",
    async run(rest, { harness }) {
      if (rest === "") return `Thinking is ${harness.agent.state.thinkingLevel}.`;
      if (!isThinkingLevel(rest)) throw new Error(`There is no level "${rest}".`);
      await harness.setThinking(rest);
      return `Thinking is ${rest} now.`;
    },
  },
  mode: {
    description: "show what it may do without asking, or change that",
    hint: Object.keys(MODES).join(", "),
    async run(rest, { harness }) {
      if (rest === "") return `The mode is ${harness.mode}. ${MODES[harness.mode].description}`;
      if (!isMode(rest)) {
        throw new Error(`There is no mode "${rest}". There is: ${Object.keys(MODES).join(", ")}.`);
      }
      await harness.setMode(rest);
      return `The mode is ${rest} now. ${MODES[rest].description}`;
    },
  },
  cost: {
    description: "show what this session has used",
    run(_rest, { usage }) {
      const tokens = totalTokens(usage).toLocaleString("en");
      const cost = usage.cost ? dollars(usage.cost.total) : "a price that is not known";
      return `${tokens} tokens, for ${cost}.`;
    },
  },
  context: {
    description: "show what the next request is made of",
    run(_rest, { harness }) {
      const {
        total,
        free,
        trigger,
        window: _,
        ...parts
      } = contextBreakdown(harness.agent.state, {});
      const count = (tokens: number): string => tokens.toLocaleString("en");
      const rows = Object.entries(parts).map(([name, tokens]) => `| ${name} | ${count(tokens)} |`);
      return [
        `About ${count(total)} tokens; ${count(free)} more until it is compacted at ${count(trigger)}.`,
        "",
        "| part | tokens |",
        "|---|---|",
        ...rows,
      ].join("\n");
    },
  },
  session: {
    description: "show where this session is kept",
    run(_rest, { harness, sessionId }) {
      const { session } = harness;
      if (!session) return `Session ${sessionId} is not written down.`;
      return `Session ${sessionId}\n\nFile: \`${session.path}\`\n\nIn a terminal: \`gyre --resume ${sessionId}\``;
    },
  },
  title: {
    description: "name this session",
    hint: "the name",
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
