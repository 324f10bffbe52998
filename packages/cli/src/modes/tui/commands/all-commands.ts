import { homedir } from "node:os";
import type { Harness } from "../../../harness/harness.ts";
import type { Io } from "../../../core/io.ts";
import { configFolder } from "../../../settings/file.ts";
import type { Setup } from "../../../harness/setup.ts";
import type { TerminalCommand } from "../ui/ui.ts";
import { customCommands } from "./custom.ts";
import { rewindCommand } from "./session/rewind.ts";
import { sessionCommands } from "./session/session-commands.ts";
import { settingsCommands } from "./settings-commands.ts";

/** What is to be known of the world to find all commands. */
export interface CommandPlaces {
  harness: Harness;
  setup: Setup;
  io: Io;
}

/** All commands: those of the program, then those of files, skills and plugins. */
export function allCommands({ harness, io, setup }: CommandPlaces): readonly TerminalCommand[] {
  const own = ownCommands(() => all);
  const { cwd, warn } = setup;
  const home = homedir();
  const config = configFolder(io.env, home);
  const all = [...own, ...customCommands({ harness, own, cwd, home, config, warn })];
  return all;
}

/** Those of the program, in the order in which they are listed. */
export function ownCommands(all: () => readonly TerminalCommand[]): TerminalCommand[] {
  return [...settingsCommands(all), ...sessionCommands, rewindCommand];
}
