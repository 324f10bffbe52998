import { type McpServerEntry, readMcpServers } from "@gyre/mcp";
import { findMcpFile, mcpTrust, projectEntries, readMcpFile } from "./project.ts";
import { PROGRAM_SCOPE, USER_SCOPE } from "./tools.ts";
import { findProjectFile } from "../settings/project-file.ts";
import type { SettingsLayer } from "../settings/load.ts";
import { oneLine } from "../settings/problem.ts";
import type { Environment } from "../core/environment.ts";
import { TrustFileError } from "../settings/trust.ts";

export interface McpServersOptions {
  layers: readonly SettingsLayer[];
  /** The folder to work in, absolute. */
  cwd: string;
  env: Environment;
  home: string;
  /** False: those of `.mcp.json` are left out. Default: true. */
  readsFiles?: boolean;
  /** The project's servers are used without being trusted. */
  trustOnce: boolean;
  /** Warns of nothing that is left out for want of trust: the caller asks about that. */
  quietAboutTrust?: boolean;
  warn: (text: string) => void;
}

/**
 * The MCP servers that are set: those of the user, then those of the project's settings, then
 * those of its `.mcp.json` if it is trusted. Of a name that is there twice the first counts: a
 * rule for a server of the user's must not come to mean one of a project.
 */
export function mcpServers(options: McpServersOptions): McpServerEntry[] {
  const { layers, cwd, home } = options;
  const entries: McpServerEntry[] = [];
  const add = (more: readonly McpServerEntry[]): void => {
    for (const entry of more) {
      const isTaken = entries.some(({ name }) => name === entry.name);
      if (isTaken) {
        options.warn(
          oneLine(
            `The MCP server "${entry.name}" of ${entry.scope} is not used: there is one already.`,
          ),
        );
      } else entries.push(entry);
    }
  };
  for (const { source, settings } of layers) {
    if (!settings.mcp) continue;
    const { servers } = readMcpServers(settings.mcp);
    if (source === "project file") {
      add(projectEntries(servers, findProjectFile(cwd, home)?.folder ?? cwd));
    } else if (source === "program") {
      // A program has filled in what it wants filled in.
      const given = { scope: PROGRAM_SCOPE, isLiteral: true };
      add(Object.entries(servers).map(([name, config]) => ({ name, config, ...given })));
    } else {
      add(Object.entries(servers).map(([name, config]) => ({ name, config, scope: USER_SCOPE })));
    }
  }
  if (options.readsFiles ?? true) add(ofProject(options));
  return entries;
}

function ofProject(options: McpServersOptions): McpServerEntry[] {
  const { cwd, env, home, quietAboutTrust, trustOnce, warn } = options;
  const file = findMcpFile(cwd, home);
  if (!file) return [];
  const unused = (why: string): McpServerEntry[] => {
    warn(oneLine(`${file.path} is not used: ${why}`));
    return [];
  };
  const project = readMcpFile(file, cwd);
  if (!project.files) return unused(`${project.problems.join("; ")}.`);
  if (!trustOnce) {
    const how = "To see which servers it would start and trust it: gyre trust";
    try {
      const trust = mcpTrust(project, env, home);
      if (quietAboutTrust && trust !== "trusted") return [];
      if (trust === "changed") return unused(`it has changed since it was trusted. ${how}`);
      if (trust === "unknown") return unused(`it is not trusted. ${how}`);
    } catch (error) {
      if (!(error instanceof TrustFileError)) throw error;
      return quietAboutTrust ? [] : unused(`${error.message}.`);
    }
  }
  for (const problem of project.problems) warn(oneLine(`${file.path}: ${problem}.`));
  return projectEntries(project.servers, project.folder);
}
