import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readlink, realpath, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { isRecord } from "../../common/records.ts";
import { PartialJsonParser } from "../../stream/partial-json.ts";
import { formatErrorCode, KeyFileError } from "./key-error.ts";

const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;
/** The bits of a mode that give anything to others than the owner. */
const OTHERS = 0o077;
const MODE_BITS = 0o777;
const OCTAL = 8;
const MAX_FILE_BYTES = 1_048_576;
const INDENT = 2;

/** What the file has for a service. `unusable` says why it cannot be used. */
export type KeyEntry =
  | { type: "key"; key: string }
  | { type: "command"; command: readonly [string, ...string[]] }
  | { type: "unusable"; problem: string };

/** The default place of the keys. */
export function defaultKeyFile(env: Readonly<Record<string, string | undefined>>): string {
  const folder = env["XDG_CONFIG_HOME"];
  // A relative folder is to be ignored, says the standard of that variable.
  const config = folder && isAbsolute(folder) ? folder : join(homedir(), ".config");
  return join(config, "gyre", "keys.json");
}

/**
 * All entries, in their order, as they are in the file; none where there is no file.
 * Throws `KeyFileError` where others than the owner have access to it (Windows has no
 * such modes) or it cannot be read.
 */
export async function readKeyFile(path: string): Promise<Map<string, unknown>> {
  const text = await readPrivate(path);
  if (text === undefined || text.trim() === "") return new Map();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The words of that error quote the file.
    throw new KeyFileError(path, `is not JSON: see ${placeOfError(text)}`);
  }
  if (!isRecord(value)) throw new KeyFileError(path, "is not a JSON object");
  return new Map(Object.entries(value));
}

/**
 * Puts the entries into the file, in one step: who reads it meanwhile gets the old or
 * the new ones. It is its owner's alone, as is the folder if that has to be made. A
 * link stays one.
 */
export async function writeKeyFile(
  path: string,
  entries: ReadonlyMap<string, unknown>,
): Promise<void> {
  const text = `${JSON.stringify(Object.fromEntries(entries), undefined, INDENT)}\n`;
  try {
    const target = await resolveTarget(path);
    await mkdir(dirname(target), { recursive: true, mode: OWNER_ONLY_FOLDER });
    const draft = `${target}.${randomUUID()}.tmp`;
    try {
      await writeDraft(draft, text);
      await rename(draft, target);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  } catch (error) {
    throw new KeyFileError(path, `cannot be written (${formatErrorCode(error)})`);
  }
}

/** What an entry of the file says; nothing where there is none. */
export function keyEntry(value: unknown): KeyEntry | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string") return { type: "key", key: value };
  // A login, which is used where the program names its provider.
  if (isRecord(value) && isRecord(value["oauth"])) return undefined;
  const command = isRecord(value) ? value["command"] : undefined;
  if (isCommand(command)) return { type: "command", command };
  return {
    type: "unusable",
    problem:
      typeof command === "string"
        ? 'has a command that is one string: write a list, as in ["op", "read", "op://..."]'
        : 'is neither a key nor {"command": ["program", "argument"]}',
  };
}

/** A program and its arguments. */
export function isCommand(value: unknown): value is readonly [string, ...string[]] {
  return (
    Array.isArray(value) &&
    value.every((word) => typeof word === "string") &&
    value[0] !== undefined &&
    value[0] !== ""
  );
}

async function readPrivate(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    // Without waiting: a pipe would block until a program writes into it.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = formatErrorCode(error);
    if (code === "ENOENT") return undefined;
    throw new KeyFileError(path, `cannot be opened (${code})`);
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new KeyFileError(path, "is not a file");
    if (process.platform !== "win32" && (stats.mode & OTHERS) !== 0) {
      const shown = (stats.mode & MODE_BITS).toString(OCTAL);
      throw new KeyFileError(
        path,
        `is open to others than its owner (mode ${shown}): run chmod 600 ${inShell(path)}`,
      );
    }
    if (stats.size > MAX_FILE_BYTES)
      throw new KeyFileError(path, `has more than ${MAX_FILE_BYTES} bytes`);
    return (await file.readFile("utf8")).replace(/^\uFEFF/, "");
  } finally {
    await file.close();
  }
}

async function writeDraft(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", OWNER_ONLY);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Where the links lead, also if there is nothing there yet. */
async function resolveTarget(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (formatErrorCode(error) !== "ENOENT") throw error;
  }
  try {
    return await resolveTarget(resolve(dirname(path), await readlink(path)));
  } catch (error) {
    // Neither is there a link.
    if (formatErrorCode(error) === "ENOENT" || formatErrorCode(error) === "EINVAL") return path;
    throw error;
  }
}

function placeOfError(text: string): string {
  const parser = new PartialJsonParser();
  parser.feed(text);
  const end = parser.end();
  const before = text.slice(0, end.ok ? text.length : end.position).split("\n");
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}

/** A path as one types it. */
function inShell(path: string): string {
  return /^[\w./~+-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}
