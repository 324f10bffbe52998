import { pathToFileURL } from "node:url";
import type { AgentTool } from "@gyre/agent";
import { type Clock, systemClock, errorMessage, toRecord } from "@gyre/ai";
import type { GyrePlugin } from "@gyre/tools";
import { CodingAgentError } from "../core/errors.ts";
import { CommandRegistry } from "./command-registry.ts";
import { openStage, type Registered } from "./plugin-api.ts";
import { findPlugin, PluginError } from "../settings/plugin-entry.ts";
import type { Settings } from "../settings/settings.ts";
import { within } from "./time-limit.ts";

/** For loading a plugin and for all that it does to register. */
export const PLUGIN_TIMEOUT_MS = 10_000;

export interface PluginOptions {
  /** Called before each plugin that is loaded. */
  onForeignCode?: (() => void) | undefined;
  /** Names that commands of plugins may not have. Default: none. */
  reservedCommands?: readonly string[];
  /** Absolute: files, folders of packages, or places in a `node_modules`. */
  paths: readonly string[];
  /** Plugins of the program itself. Loading rejects where one fails. */
  given?: readonly GyrePlugin[];
  cwd: string;
  version: string;
  settings: Settings;
  /** Called with a line for each plugin that is left out, and with the plugins' own lines. */
  warn: (text: string) => void;
  clock?: Clock;
  /** For tests. Default: as Node does. */
  load?: (url: string) => Promise<unknown>;
}

/** A plugin that is in use. */
export interface LoadedPlugin extends Registered {
  name: string;
}

export interface LoadedPlugins {
  plugins: readonly LoadedPlugin[];
  /** Of all of them. */
  tools: readonly AgentTool[];
  commands: CommandRegistry;
}

/**
 * Loads plugins, one after the other. One that throws, hangs or registers what cannot be
 * is reported by name and left out, with all that it had registered; the others work.
 */
export async function loadPlugins(options: PluginOptions): Promise<LoadedPlugins> {
  const { warn } = options;
  const plugins: LoadedPlugin[] = [];
  const tools = new Map<string, AgentTool>();
  const commands = new CommandRegistry(options.reservedCommands);
  const add = async (source: PluginSource): Promise<void> => {
    const plugin = await loadPlugin(source, options, new Set(tools.keys()), commands);
    for (const tool of plugin.tools) tools.set(tool.name, tool);
    for (const command of plugin.commands) commands.add(command);
    plugins.push(plugin);
  };
  for (const [index, plugin] of (options.given ?? []).entries()) {
    const name = `plugins[${index}]`;
    await add({ name, load: async () => plugin }).catch((error: unknown) => {
      const message = `${name} cannot be used: ${errorMessage(error)}`;
      throw new CodingAgentError("bad_option", message, { cause: error });
    });
  }
  for (const path of new Set(options.paths)) {
    try {
      await add(findSource(path, options));
    } catch (error) {
      warn(`The plugin ${path} is left out: ${errorMessage(error)}`);
    }
  }
  return { plugins, tools: [...tools.values()], commands };
}

/** Where a plugin comes from: `load` gives the module, or the plugin itself. */
interface PluginSource {
  name: string;
  load: () => Promise<unknown>;
}

/** Throws `PluginError` for what is no plugin. */
function findSource(
  path: string,
  { load = importModule, onForeignCode }: PluginOptions,
): PluginSource {
  const { name, file } = findPlugin(path);
  refuseTypes(file);
  return {
    name,
    load: async () => {
      onForeignCode?.();
      return load(pathToFileURL(file).href);
    },
  };
}

async function loadPlugin(
  { name, load }: PluginSource,
  options: PluginOptions,
  tools: ReadonlySet<string>,
  commands: CommandRegistry,
): Promise<LoadedPlugin> {
  const { cwd, version, settings, warn, clock = systemClock } = options;
  const log = (text: string): void => warn(`${name}: ${text}`);
  const stage = openStage({ cwd, version, settings, log, tools, commands });
  const register = async (): Promise<void> => {
    const plugin = pluginIn(await load());
    await plugin.registerTools(stage.registry, stage.api);
  };
  try {
    await within(PLUGIN_TIMEOUT_MS, register(), clock);
  } finally {
    stage.close();
  }
  return { name, ...stage.registered() };
}

function importModule(url: string): Promise<unknown> {
  return import(/* @vite-ignore */ url);
}

function pluginIn(module: unknown): GyrePlugin {
  const isPlugin = (value: unknown): value is GyrePlugin =>
    typeof toRecord(value)["registerTools"] === "function";
  if (isPlugin(module)) return module;
  const given = toRecord(module)["default"];
  if (isPlugin(given)) return given;
  throw new PluginError("it exports no function registerTools");
}

const TYPESCRIPT = /\.[cm]?ts$/;

/** Throws `PluginError` for what this Node cannot load. */
export function refuseTypes(file: string): void {
  const { typescript } = process.features as { typescript?: unknown };
  if (!TYPESCRIPT.test(file) || typescript) return;
  throw new PluginError(
    `it is TypeScript, which Node ${process.versions.node} does not run. Use Node 24, or compile it`,
  );
}
