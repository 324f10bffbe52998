import type { McpServerEntry } from "@gyre/mcp";
import {
  loadSettings,
  runsSomething,
  type SettingsLayer,
  type SettingsOptions,
  type SettingsSource,
} from "../settings/load.ts";
import { findProjectFile, MCP_FILE } from "../settings/project-file.ts";
import type { Policy } from "../policy/policy.ts";
import type { Settings } from "../settings/settings.ts";
import type { TrustedRun } from "../settings/trusted-run.ts";

/** All that the files, the environment and the caller say of an agent. */
export interface LoadedSetup {
  settings: Settings;
  /** What the command line or the program itself said. */
  explicit: ReadonlySet<keyof Settings>;
  /** MCP servers that are set and may be used. */
  mcpServers?: readonly McpServerEntry[];
  /** What a trusted project runs. */
  trusted?: TrustedRun;
  /** What each source says, the first to be replaced first. */
  layers: readonly SettingsLayer[];
  /** What the administrator of the machine allows at most. */
  policy: Policy | undefined;
}

export interface LoadSetupOptions extends SettingsOptions {
  policy: Policy | undefined;
  warn: (text: string) => void;
}

const EXPLICIT: ReadonlySet<SettingsSource | undefined> = new Set<SettingsSource>([
  "command line",
  "program",
]);

/** Reads it. Rejects as `loadSettings` does. */
export async function loadSetup(options: LoadSetupOptions): Promise<LoadedSetup> {
  const { cwd, home, policy, trustOnce = false } = options;
  const { settings, sources, layers } = await loadSettings(options);
  const mayHave = policy?.rules.mcp !== false;
  const readsFiles =
    (options.readsFiles ?? true) && mayHave && policy?.refusesProjects === undefined;
  const hasServers =
    settings.mcp !== undefined || (readsFiles && findProjectFile(cwd, home, MCP_FILE));
  const mcpServers = hasServers
    ? (await import("../mcp/servers.ts")).mcpServers({
        ...options,
        ...{ readsFiles, layers, trustOnce },
        quietAboutTrust: options.quietAboutTrust === true || options.quietAboutShared === true,
      })
    : [];
  const trusted = await findTrustedRun(layers, mcpServers, cwd);
  const names = Object.keys(sources) as (keyof Settings)[];
  return {
    settings,
    explicit: new Set(names.filter((name) => EXPLICIT.has(sources[name]))),
    layers,
    policy,
    ...(mcpServers.length > 0 && { mcpServers }),
    ...(trusted && { trusted }),
  };
}

async function findTrustedRun(
  layers: readonly SettingsLayer[],
  mcpServers: readonly McpServerEntry[],
  cwd: string,
): Promise<TrustedRun | undefined> {
  const servers = mcpServers.filter(({ check }) => check !== undefined);
  const runs = layers.some(({ source, settings }) =>
    source === "project file" ? runsSomething(settings) : settings.hooks !== undefined,
  );
  if (!runs && servers.length === 0) return undefined;
  const { readTrustedRun } = await import("../settings/trusted-run.ts");
  return readTrustedRun(layers, cwd, servers);
}
