import { errorMessage } from "@gyre/ai";
import { type McpServerConfig, readMcpServers } from "@gyre/mcp";
import { writeJsonFile } from "../core/json-file.ts";
import { readSmallFile } from "../settings/file.ts";

/** A file that has MCP servers in it: the user's settings, or the `.mcp.json` of a project. */
export interface ServerFile {
  path: string;
  /** What the servers are under. */
  key: "mcp" | "mcpServers";
}

/** The file cannot be changed as it is. */
export class ServerFileError extends Error {
  readonly code = "bad_server_file";
}

/** The servers of a file by name, as they are written there; none where it is not there. Throws `ServerFileError`. */
export function readServers(file: ServerFile): Readonly<Record<string, unknown>> {
  return read(file).servers;
}

/**
 * Writes a server into a file, which is made where it is missing, and leaves all else in it as it is. Throws
 * `ServerFileError` for a server that could not be used, or a name that is there.
 */
export function addServer(file: ServerFile, name: string, config: McpServerConfig): void {
  const before = read(file);
  if (Object.hasOwn(before.servers, name)) {
    throw new ServerFileError(
      `${file.path} has an MCP server "${name}" already. Remove it first: gyre mcp remove ${name}`,
    );
  }
  const [problem] = readMcpServers({ [name]: config }).problems;
  if (problem !== undefined) throw new ServerFileError(`The MCP server ${problem}.`);
  write(file, before, { ...before.servers, [name]: config });
}

/** Removes a server from a file. False where it is not there. Throws `ServerFileError`. */
export function removeServer(file: ServerFile, name: string): boolean {
  const before = read(file);
  if (!Object.hasOwn(before.servers, name)) return false;
  const left = Object.entries(before.servers).filter(([other]) => other !== name);
  write(file, before, Object.fromEntries(left));
  return true;
}

interface Content {
  text: string;
  all: Readonly<Record<string, unknown>>;
  servers: Readonly<Record<string, unknown>>;
}

function read({ path, key }: ServerFile): Content {
  const found = readSmallFile(path);
  if (!found) return { text: "", all: {}, servers: {} };
  if ("problem" in found) throw new ServerFileError(`${path} ${found.problem}.`);
  const text = found.content.toString("utf8").replace(/^\uFEFF/, "");
  let all: unknown;
  try {
    all = JSON.parse(text);
  } catch (error) {
    // The words of that error quote the file.
    throw new ServerFileError(`${path} is not JSON: fix it first.`, { cause: error });
  }
  const servers = isRecord(all) ? (all[key] ?? {}) : undefined;
  if (!isRecord(all) || !isRecord(servers)) {
    throw new ServerFileError(`${path}: "${key}" is not an object of servers: fix it first.`);
  }
  return { text, all, servers };
}

function write({ path, key }: ServerFile, { all, text }: Content, servers: object): void {
  try {
    writeJsonFile(path, text, { ...all, [key]: servers });
  } catch (error) {
    throw new ServerFileError(errorMessage(error), { cause: error });
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
