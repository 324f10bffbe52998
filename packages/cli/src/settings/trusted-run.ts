import type { McpServerEntry } from "@gyre/tools/mcp";
import { placesThatRun, watchFiles } from "./files-that-run.ts";
import { type CommandHook, parseHooks } from "./hooks.ts";
import type { Settings } from "./settings.ts";

/** What a trusted project runs outside of the sandbox. */
export interface TrustedRun {
  /** Files that neither tools nor sandboxed commands may change, absolute. */
  readonly places: readonly string[];
  /** Why a hook may not be run any more: a sentence without its end. */
  refuseHook(hook: Pick<CommandHook, "command">): string | undefined;
}

/** Reads what the settings of a project, and those servers that are its own, run as it is now. */
export function readTrustedRun(
  settings: Settings,
  folder: string,
  servers: readonly McpServerEntry[],
): TrustedRun {
  const ofServers = servers.flatMap(({ name, config, scope }) =>
    placesThatRun({ mcp: { [name]: config } }, scope),
  );
  const { hooks = {} } = settings;
  const describeChange = watchFiles({ hooks }, folder);
  const own = new Set(parseHooks(hooks).hooks.map(({ command }) => JSON.stringify(command)));
  return {
    places: [...new Set([...placesThatRun(settings, folder), ...ofServers])],
    refuseHook: ({ command }) => (own.has(JSON.stringify(command)) ? describeChange() : undefined),
  };
}
