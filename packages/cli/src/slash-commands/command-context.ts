import type { Session } from "@gyre/sessions";
import type {
  Command,
  CommandContext,
  CommandPart,
  OpenRequest,
} from "@gyre/coding/internal/conversation/command";
import type { Waiting } from "@gyre/coding/internal/conversation/queue";
import type { Environment, Io } from "../core/io.ts";
import type { RunOptions } from "@gyre/coding/internal/race/race";
import type { ApprovalAnswer, ApprovalRequest } from "@gyre/tools";
import type { ShownAgent } from "@gyre/coding/internal/conversation/types";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { Setup } from "../core/setup.ts";
import type { ModelChoice } from "@gyre/coding/internal/text/choices";

/** The part of a session that is needed to look through it. */
export type BrowsedSession = Pick<
  Session,
  "entries" | "leaf" | "read" | "findIds" | "findBranch" | "append"
>;

/** How a text was copied: by a program, or by the terminal, which does not report whether it did. */
export interface Copied {
  terminal: boolean;
  program?: string;
}

/** What the slash commands that stand for keys use, where there are no keys. */
export interface LineControls {
  waiting(): readonly Waiting[];
  /** Stops all that runs. Answers whether anything did. */
  interrupt(): boolean;
  /** Gives back what waits. Answers whether anything did. */
  takeBack(): boolean;
  /** The text that was given back last, which is then gone. */
  takeDraft(): string | undefined;
}

/**
 * What slash commands work with that need no more of the agent than a view does, wherever it runs. The optional parts
 * are not there in every view.
 */
export interface ShownContext extends CommandContext {
  /** The agent that is open now. */
  harness: ShownAgent;
  /** Models that can be chosen. */
  models: () => Promise<readonly ModelChoice[]>;
  /** All commands of this view. */
  commands: () => readonly Command[];
  /** How things are typed in this view. */
  help: readonly CommandPart[];
  /** Asks for a place in the tree of a session. Undefined: the question was left. */
  chooseEntry?: (session: BrowsedSession) => Promise<OpenRequest | undefined>;
  copy?: (text: string) => Promise<Copied>;
  lines?: LineControls;
  /** Opens an agent in a copy of the folder, with the rights of the one that is open. */
  openRival?: RunOptions["open"];
  /** Asks about a call of another agent than the one that is open. Undefined: the question was left. */
  askFor?: (
    request: ApprovalRequest,
    asker: { name: string; folder: string },
  ) => Promise<ApprovalAnswer | undefined>;
  /** Shows these rows while a command is at work, drawn again and again. Gives what ends that. */
  showRows?: (rows: () => readonly string[]) => () => void;
  /** Turns the keys of vim on or off. Answers whether they are on. */
  toggleVim?: () => Promise<boolean>;
  /** Uses the colors of a theme. Rejects where there is none of this name. */
  setTheme?: (name: string) => Promise<void>;
}

export type ShownCommand = Command<ShownContext>;

/** What a slash command of the program works with. */
export interface SlashContext extends ShownContext {
  harness: Harness;
  env: Environment;
  setup: Pick<Setup, "cwd" | "layers"> & Partial<Pick<Setup, "settings">>;
  /** Asks for a secret, which is not shown. Undefined: the question was left. */
  askSecret?: (title: string) => Promise<string | undefined>;
}

export type SlashCommand = Command<SlashContext>;

/** The parts of a context that differ between a terminal and a screen reader. */
export interface OwnContext extends Omit<
  SlashContext,
  "env" | "setup" | "commands" | "models" | "copy"
> {
  /** Writes a sequence to the terminal. Returns false where that is not possible. */
  control: (sequence: string) => boolean;
}

/** What a view gives to slash commands, whichever agent they work with. */
export type ViewContext = Omit<OwnContext, "harness">;

/** The context of slash commands in an interactive program. */
export function createSlashContext(
  { commands, io, setup }: { commands: () => readonly Command[]; io: Io; setup: () => Setup },
  { control, ...own }: OwnContext,
): SlashContext {
  const { cwd, layers, settings, policy } = setup();
  const { env } = io;
  return {
    ...own,
    env,
    setup: { cwd, settings, ...(layers && { layers }) },
    commands,
    async models() {
      const { usableModels } = await import("@gyre/coding/internal/models/usable-models");
      return usableModels(settings, env, policy);
    },
    copy: (text) => copyBy(control, text, env),
  };
}

/** Copies a text by the terminal, and by a program where there is one. */
export async function copyBy(
  control: OwnContext["control"],
  text: string,
  env: Environment,
): Promise<Copied> {
  const { copyText } = await import("../core/clipboard.ts");
  return copyText(text, { env, platform: process.platform, control });
}
