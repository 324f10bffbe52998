import { join } from "node:path";
import { isAddress, type McpServerConfig, type McpServerEntry, readMcpServers } from "@gyre/mcp";
import {
  findProjectFile,
  MCP_FILE,
  type ProjectFile,
  readProjectFile,
} from "../settings/project-file.ts";
import { filesThatRun, watchFiles } from "../settings/files-that-run.ts";
import { isPluginError, trustedFile } from "../settings/load.ts";
import { oneLine } from "../settings/problem.ts";
import type { Environment } from "../core/environment.ts";
import {
  readTrustFile,
  type Trust,
  type TrustedFile,
  trustFile,
  findTrust,
} from "../settings/trust.ts";

const TRUST_AGAIN = "The user has to look at it: gyre trust shows it.";

/** The servers of a project, read but perhaps not trusted. */
export interface ProjectMcp {
  /** The folder of the project. */
  readonly folder: string;
  readonly path: string;
  readonly servers: Readonly<Record<string, McpServerConfig>>;
  /** What is wrong with it, one line each. */
  readonly problems: readonly string[];
  /** Its content as it is trusted, and that of what it runs; absent where it could not be read. */
  readonly files?: readonly TrustedFile[];
}

/** The nearest `.mcp.json` of the project around `cwd`. */
export function findMcpFile(cwd: string, home: string): ProjectFile | undefined {
  return findProjectFile(cwd, home, MCP_FILE);
}

export function readMcpFile(file: ProjectFile, cwd: string): ProjectMcp {
  const { folder, path } = file;
  const nothing = { folder, path, servers: {} };
  const read = readProjectFile(file, cwd);
  if ("problem" in read) return { ...nothing, problems: [`it ${read.problem}`] };
  const files: TrustedFile[] = [trustedFile(file, read.content)];
  let value: unknown;
  try {
    value = JSON.parse(read.content.toString("utf8").replace(/^\uFEFF/, ""));
  } catch {
    // The words of that error quote the file.
    return { ...nothing, files, problems: ["it is not JSON"] };
  }
  if (typeof value !== "object" || value === null || !("mcpServers" in value)) {
    return { ...nothing, files, problems: ['it has no "mcpServers"'] };
  }
  const { servers, problems } = readMcpServers(value.mcpServers);
  try {
    files.push(...filesThatRun({ mcp: servers }, folder));
  } catch (error) {
    if (!isPluginError(error)) throw error;
    return { ...nothing, problems: [error.message] };
  }
  return { ...nothing, files, servers, problems };
}

/** What the trust file calls it: apart from the settings of the same folder. */
export function mcpTrustKey({ folder }: Pick<ProjectMcp, "folder">): string {
  return join(folder, MCP_FILE);
}

/** Throws `TrustFileError`. */
export function mcpTrust(project: ProjectMcp, env: Environment, home: string): Trust {
  const folders = readTrustFile(trustFile(env, home));
  return findTrust(folders, mcpTrustKey(project), project.files ?? []);
}

/**
 * Servers of a project, started in its folder unless they say otherwise, and only as long as the
 * files that they run stay as they are now.
 */
export function projectEntries(
  servers: Readonly<Record<string, McpServerConfig>>,
  folder: string,
): McpServerEntry[] {
  return Object.entries(servers).map(([name, config]) => {
    if (isAddress(config)) return { name, config, scope: folder };
    const { cwd = "." } = config;
    const describeChange = watchFiles({ mcp: { [name]: config } }, folder);
    const isVariable = cwd.startsWith("${") || cwd.startsWith("/");
    return {
      name,
      config: { ...config, cwd: isVariable ? cwd : join(folder, cwd) },
      scope: folder,
      check() {
        const change = describeChange();
        if (change !== undefined) throw new Error(oneLine(`${change}. ${TRUST_AGAIN}`));
      },
    };
  });
}
