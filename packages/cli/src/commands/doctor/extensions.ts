import type { McpServerEntry } from "@gyre/mcp";
import { type Check, ok, warning, withoutSecrets } from "./checks.ts";
import type { GuidanceOptions } from "@gyre/coding/internal/guidance/instructions";
import { claudeFolder } from "@gyre/coding/internal/settings/project-file";
import { configFolder } from "@gyre/coding/internal/settings/file";
import type { SettingsLayer } from "@gyre/coding/internal/settings/load";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import type { Environment } from "../../core/io.ts";

/** Names that are listed; of more, how many there are. */
const MAX_NAMES = 20;

export interface ExtensionPlace {
  settings: Settings;
  layers: readonly SettingsLayer[];
  /** The folder to work in, absolute. */
  cwd: string;
  env: Environment;
  home: string;
  /** The project is used without being trusted. */
  trustOnce: boolean;
}

/**
 * What a run would load, start and read beside its settings: plugins, hooks, MCP servers,
 * skills and instruction files. All of it is looked for, and none of it is run.
 */
export async function checkExtensions(place: ExtensionPlace): Promise<Check[]> {
  return [
    ...(await checkPlugins(place)),
    ...(await checkHooks(place)),
    ...(await checkMcp(place)),
    ...(await checkSkills(place)),
    ...(await checkInstructions(place)),
  ];
}

async function checkPlugins({ settings: { plugins = [] } }: ExtensionPlace): Promise<Check[]> {
  if (plugins.length === 0) return [ok("plugins", "none")];
  const [{ findPlugin, PluginError }, { refuseTypes }] = await Promise.all([
    import("@gyre/coding/internal/settings/plugin-entry"),
    import("@gyre/coding/internal/extensions/plugins"),
  ]);
  return [...new Set(plugins)].map((path) => {
    try {
      const { file, name } = findPlugin(path);
      refuseTypes(file);
      return ok("plugins", `${name}: ${file}, which a run loads`);
    } catch (error) {
      if (!(error instanceof PluginError)) throw error;
      return warning("plugins", `The plugin ${path} is left out: ${error.message}.`);
    }
  });
}

async function checkHooks({ settings: { hooks } }: ExtensionPlace): Promise<Check[]> {
  if (hooks === undefined) return [ok("hooks", "none")];
  const { HOOK_EVENTS, parseHooks } = await import("@gyre/coding/internal/settings/hooks");
  const { hooks: given, unknown } = parseHooks(hooks);
  const counts = HOOK_EVENTS.flatMap((event) => {
    const count = given.filter((hook) => hook.event === event).length;
    return count > 0 ? [`${count} for ${event}`] : [];
  });
  return [
    ok("hooks", counts.join(", ") || "none"),
    ...(unknown.length > 0
      ? [warning("hooks", `There are none for ${unknown.join(", ")}: passed over.`)]
      : []),
  ];
}

async function checkMcp(place: ExtensionPlace): Promise<Check[]> {
  const { mcpServers } = await import("@gyre/coding/internal/mcp/servers");
  const { checks, warn } = collected("mcp");
  const servers = mcpServers({ ...place, warn });
  const found = servers.map((server) => ok("mcp", serverText(server)));
  return orNone("mcp", [...found, ...checks]);
}

/** What is started or reached; not its arguments, which may hold a key. */
function serverText({ name, config, scope }: McpServerEntry): string {
  const where = "command" in config ? config.command : withoutSecrets(config.url);
  const state = config.disabled ? ", disabled" : "";
  return `${name}: ${where}, of ${scope === "user" ? "your settings" : scope}${state}`;
}

async function checkSkills(place: ExtensionPlace): Promise<Check[]> {
  if (place.settings.skills === false) return [ok("skills", "off, as the settings say")];
  const { findSkills } = await import("@gyre/coding/internal/guidance/skills");
  const { checks, warn } = collected("skills");
  const skills = await findSkills(await locateGuidance(place, warn));
  const names = skills.slice(0, MAX_NAMES).map(({ name }) => name);
  const more = skills.length > names.length ? ` and ${skills.length - names.length} more` : "";
  const found = skills.length > 0 ? [ok("skills", `${names.join(", ")}${more}`)] : [];
  return orNone("skills", [...found, ...checks]);
}

async function checkInstructions(place: ExtensionPlace): Promise<Check[]> {
  const name = "instructions";
  if (place.settings.instructionFiles === false) return [ok(name, "off, as the settings say")];
  const { readInstructions } = await import("@gyre/coding/internal/guidance/instructions");
  const { checks, warn } = collected(name);
  const files = readInstructions(await locateGuidance(place, warn));
  return orNone(name, [...files.map(({ path }) => ok(name, path)), ...checks]);
}

async function locateGuidance(
  { cwd, env, home }: ExtensionPlace,
  warn: (text: string) => void,
): Promise<GuidanceOptions> {
  const { AgentTexts, agentTextFolder, describeHeld } =
    await import("@gyre/coding/internal/guidance/agent-texts");
  const texts = new AgentTexts(agentTextFolder(env));
  const config = configFolder(env, home);
  const claude = claudeFolder(env, home);
  return { cwd, home, config, claude, warn, texts, hold: (text) => warn(describeHeld(text)) };
}

/** What is warned of, as checks. */
function collected(name: string): { checks: Check[]; warn: (text: string) => void } {
  const checks: Check[] = [];
  return { checks, warn: (text) => void checks.push(warning(name, text)) };
}

function orNone(name: string, checks: Check[]): Check[] {
  return checks.length > 0 ? checks : [ok(name, "none")];
}
