import type { Session } from "@gyre/sessions";
import type {
  Command,
  CommandContext,
  CommandPart,
  OpenRequest,
} from "@gyre/coding/internal/conversation/command";
import type { Waiting } from "@gyre/coding/internal/conversation/queue";
import type { Environment, Io } from "../core/io.ts";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { Setup } from "../core/setup.ts";
import type { ModelChoice } from "@gyre/coding/internal/text/choices";

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

/** What a slash command of the program works with. The optional parts are not there in every view. */
export interface SlashContext extends CommandContext {
  /** The agent that is open now. */
  harness: Harness;
  env: Environment;
  setup: Pick<Setup, "cwd" | "layers"> & Partial<Pick<Setup, "settings">>;
  /** Models that can be chosen. */
  models: () => Promise<readonly ModelChoice[]>;
  /** All commands of this view. */
  commands: () => readonly SlashCommand[];
  /** How things are typed in this view. */
  help: readonly CommandPart[];
  /** Asks for a place in the tree of a session. Undefined: the question was left. */
  chooseEntry?: (session: Session) => Promise<OpenRequest | undefined>;
  copy?: (text: string) => Promise<Copied>;
  /** Asks for a secret, which is not shown. Undefined: the question was left. */
  askSecret?: (title: string) => Promise<string | undefined>;
  lines?: LineControls;
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

/** The context of slash commands in an interactive program. */
export function createSlashContext(
  { commands, io, setup }: { commands: () => readonly SlashCommand[]; io: Io; setup: () => Setup },
  { control, ...own }: OwnContext,
): SlashContext {
  const { cwd, layers, settings } = setup();
  const { env } = io;
  return {
    ...own,
    env,
    setup: { cwd, settings, ...(layers && { layers }) },
    commands,
    async models() {
      const { usableModels } = await import("@gyre/coding/internal/models/usable-models");
      return usableModels(settings, env);
    },
    async copy(text) {
      const { copyText } = await import("../core/clipboard.ts");
      return copyText(text, { env, platform: process.platform, control });
    },
  };
}
