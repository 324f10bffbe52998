import { homedir } from "node:os";
import type { View } from "@gyre/coding/internal/conversation/command";
import type { Environment } from "../core/io.ts";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { Setup } from "../core/setup.ts";
import { claudeFolder } from "@gyre/coding/internal/settings/project-file";
import { configFolder } from "@gyre/coding/internal/settings/file";
import { builtinCommands } from "./builtin.ts";
import type { SlashCommand } from "./command-context.ts";
import { customCommands, pluginCommands } from "./custom.ts";

/** The program's own commands for a view. */
export function listBuiltin(view: View): readonly SlashCommand[] {
  return builtinCommands.filter(({ views }) => views === undefined || views.includes(view));
}

/** All commands of a terminal: those of the program, then those of files, skills and plugins. */
export async function findCommands(
  view: Exclude<View, "editor">,
  { env, harness, setup }: { harness: Harness; setup: Setup; env: Environment },
): Promise<readonly SlashCommand[]> {
  const own = listBuiltin(view);
  const { cwd, warn } = setup;
  const home = homedir();
  const config = configFolder(env, home);
  const claude = claudeFolder(env, home);
  return withoutReplaced(
    own,
    await customCommands({ harness, own, cwd, home, config, claude, warn }),
  );
}

/** All commands of an editor: those of the program, then those of plugins. */
export function findEditorCommands(harness: Pick<Harness, "commands">): readonly SlashCommand[] {
  const own = listBuiltin("editor");
  const taken = new Set(own.filter((each) => !each.isReplaceable).map(({ name }) => name));
  return withoutReplaced(
    own,
    pluginCommands(harness).filter(({ name }) => !taken.has(name)),
  );
}

function withoutReplaced(
  own: readonly SlashCommand[],
  others: readonly SlashCommand[],
): readonly SlashCommand[] {
  const names = new Set(others.map(({ name }) => name));
  return [
    ...own.filter(({ name, isReplaceable }) => !isReplaceable || !names.has(name)),
    ...others,
  ];
}
