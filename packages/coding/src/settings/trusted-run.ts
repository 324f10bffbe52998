import { homedir } from "node:os";
import type { McpServerEntry } from "@gyre/mcp";
import { placesThatRun, watchFiles } from "./files-that-run.ts";
import { type CommandHook, parseHooks } from "./hooks.ts";
import type { SettingsLayer } from "./load.ts";
import { findProjectFile } from "./project-file.ts";
import type { Settings } from "./settings.ts";

/**
 * What is run outside of the sandbox because of settings that count: those of a trusted project,
 * and the user's own where they name files of the project.
 */
export interface TrustedRun {
  /** Files that neither tools nor sandboxed commands may change, absolute. */
  readonly places: readonly string[];
  /** Why a hook may not be run any more, and what to do: sentences without the last end. */
  refuseHook(hook: Pick<CommandHook, "command">): string | undefined;
}

const OF_PROJECT = {
  since: "it was trusted",
  hint: "To see it and trust it: gyre trust",
};
const OF_USER = {
  since: "gyre was started",
  hint: "Look at it, and start gyre again",
};

/** Reads what the settings in `cwd`, and those servers that are the project's own, run as it is now. */
export function readTrustedRun(
  layers: readonly SettingsLayer[],
  cwd: string,
  servers: readonly McpServerEntry[],
): TrustedRun {
  const folder = findProjectFile(cwd, homedir())?.folder ?? cwd;
  const ofServers = servers.flatMap(({ name, config, scope }) =>
    placesThatRun({ mcp: { [name]: config } }, scope),
  );
  const watched = layers.map(({ source, settings }) =>
    source === "project file"
      ? watchLayer(settings, folder, OF_PROJECT)
      : watchLayer(settings.hooks ? { hooks: settings.hooks } : {}, folder, OF_USER),
  );
  return {
    places: [...new Set([...watched.flatMap(({ places }) => places), ...ofServers])],
    refuseHook(hook) {
      for (const layer of watched) {
        const why = layer.refuseHook(hook);
        if (why !== undefined) return why;
      }
      return undefined;
    },
  };
}

function watchLayer(
  settings: Settings,
  folder: string,
  { since, hint }: typeof OF_PROJECT,
): TrustedRun {
  const { hooks = {} } = settings;
  const describeChange = watchFiles({ hooks }, folder, since);
  const own = new Set(parseHooks(hooks).hooks.map(({ command }) => JSON.stringify(command)));
  return {
    places: placesThatRun(settings, folder),
    refuseHook({ command }) {
      const change = own.has(JSON.stringify(command)) ? describeChange() : undefined;
      return change === undefined ? undefined : `${change}. ${hint}`;
    },
  };
}
