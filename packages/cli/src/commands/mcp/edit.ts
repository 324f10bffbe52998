import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { nearNames } from "@gyre/ai";
import type { McpServerConfig } from "@gyre/mcp";
import {
  addServer,
  readServers,
  removeServer,
  type ServerFile,
  ServerFileError,
} from "@gyre/coding/internal/mcp/server-file";
import { findUserFile } from "@gyre/coding/internal/settings/load";
import { MCP_FILE } from "@gyre/coding/internal/settings/project-file";
import { EXIT, type ExitCode, ExitError, UsageError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import type { Values } from "../../core/options.ts";
import { plain } from "../../text/mcp-text.ts";

const ADD_FORMS = "gyre mcp add NAME URL, or gyre mcp add NAME COMMAND ARGS";

/** `gyre mcp add NAME URL [--header ...]`, `gyre mcp add NAME [--env ...] COMMAND ARGS`. */
export function runAdd([name, ...rest]: readonly string[], values: Values, io: Io): ExitCode {
  const [first] = rest;
  if (name === undefined || first === undefined) {
    throw new UsageError(`"mcp add" needs a name and what to reach: ${ADD_FORMS}.`);
  }
  const config = /^https?:\/\//i.test(first)
    ? readAddress(rest, values)
    : readProgram(rest, values);
  const file = findFile(values, io);
  attempt(() => addServer(file, name, config));
  const isProject = values.project === true;
  const next = isProject
    ? "It is used once the folder is trusted: gyre trust"
    : `See what it offers: gyre mcp list`;
  io.stdout.write(`${plain(name)} was added to ${file.path}. ${next}\n`);
  return EXIT.done;
}

/** `gyre mcp remove NAME`. Ends with 1 if there is no such server. */
export async function runRemove(
  [name, more]: readonly string[],
  values: Values,
  io: Io,
): Promise<ExitCode> {
  if (name === undefined || more !== undefined) {
    throw new UsageError('"mcp remove" takes the name of a server.');
  }
  const file = findFile(values, io);
  const config = attempt(() => readServers(file))[name];
  if (!attempt(() => removeServer(file, name))) {
    const near = nearNames(name, Object.keys(attempt(() => readServers(file))));
    const hint = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
    throw new ExitError(EXIT.failed, `${file.path} has no MCP server "${plain(name)}".${hint}`);
  }
  if (values.project !== true) await forgetLogin(name, config, io);
  io.stdout.write(`${plain(name)} was removed from ${file.path}.\n`);
  return EXIT.done;
}

/** A server that comes back under this name does not have what was granted to this one. */
async function forgetLogin(name: string, config: unknown, io: Io): Promise<void> {
  const [{ readMcpServers, isAddress }, { forgetStoredLogin }] = await Promise.all([
    import("@gyre/mcp"),
    import("@gyre/coding/internal/mcp/open"),
  ]);
  const server = readMcpServers({ [name]: config }).servers[name];
  if (server && isAddress(server)) forgetStoredLogin(name, server, io.env);
}

function readAddress(rest: readonly string[], { env, header = [] }: Values): McpServerConfig {
  const [url = "", more] = rest;
  if (more !== undefined) throw new UsageError(`A server at an address takes no "${more}".`);
  if (env) throw new UsageError("--env is for programs: a server at an address has --header.");
  const headers = header.map((text): [string, string] => {
    const [, name = "", value = ""] = /^([^:\s]+)\s*:\s*(.+)$/s.exec(text) ?? [];
    if (name === "") throw new UsageError(`--header "${text}" is not "Name: value".`);
    return [name, value];
  });
  return { url, ...(headers.length > 0 && { headers: Object.fromEntries(headers) }) };
}

function readProgram(rest: readonly string[], { env = [], header }: Values): McpServerConfig {
  const [command = "", ...args] = rest;
  if (header) throw new UsageError("--header is for addresses: a program has --env.");
  const variables = env.map((text): [string, string] => {
    const [, name = "", value = ""] = /^([^=\s]+)=(.*)$/s.exec(text) ?? [];
    if (name === "") throw new UsageError(`--env "${text}" is not NAME=VALUE.`);
    return [name, value];
  });
  return {
    command,
    ...(args.length > 0 && { args }),
    ...(variables.length > 0 && { env: Object.fromEntries(variables) }),
  };
}

/** The user's settings, or with `--project` the file of the folder. */
function findFile({ config, cwd = ".", project }: Values, io: Io): ServerFile {
  const folder = resolve(io.cwd, cwd);
  if (project) return { path: join(folder, MCP_FILE), key: "mcpServers" };
  const userFile =
    config === undefined ? {} : { userFile: { path: resolve(io.cwd, config), by: "--config" } };
  const place = { cwd: folder, env: io.env, home: homedir(), start: io.cwd, ...userFile };
  return { path: findUserFile(place).path, key: "mcp" };
}

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ServerFileError)) throw error;
    throw new ExitError(EXIT.failed, plain(error.message), { cause: error });
  }
}
