import { createHash, randomUUID } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describeCode, configFolder, readSmallFile } from "./file.ts";
import { realPath } from "./project-file.ts";
import type { Environment } from "../core/environment.ts";

const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;
/** The bits of a mode that let others than the owner write. */
const OTHERS_WRITE = 0o022;
const INDENT = 2;

/** A file whose content is trusted, or not. */
export interface TrustedFile {
  /** From the folder, with slashes. */
  readonly name: string;
  readonly content: Uint8Array;
}

/** `changed`: it was trusted when it had another content. */
export type Trust = "trusted" | "changed" | "unknown";

/** Fingerprints of what is trusted, by the real path of the folder. */
export type TrustedFolders = ReadonlyMap<string, string>;

/** The trust file cannot be used. */
export class TrustFileError extends Error {
  readonly code = "bad_trust_file";
}

export function trustFile(env: Environment, home: string): string {
  return join(configFolder(env, home), "trust.json");
}

/** One line for all that the files hold: it differs if any name or byte does. */
export function computeFingerprint(files: readonly TrustedFile[]): string {
  const hash = createHash("sha256");
  const byName = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const { name, content } of byName) {
    // With lengths, so that no two lists of files read the same.
    hash.update(`${Buffer.byteLength(name)}:${name}${content.byteLength}:`).update(content);
  }
  return `sha256-${hash.digest("hex")}`;
}

export function findTrust(
  folders: TrustedFolders,
  folder: string,
  files: readonly TrustedFile[],
): Trust {
  const known = folders.get(folder);
  if (known === undefined) return "unknown";
  return known === computeFingerprint(files) ? "trusted" : "changed";
}

/** Which folders are trusted. Throws `TrustFileError` for a file that is not as we write it. */
export function readTrustFile(path: string): TrustedFolders {
  const read = readSmallFile(path);
  if (!read) return new Map();
  const fail = (problem: string): TrustFileError => new TrustFileError(`${path} ${problem}`);
  if ("problem" in read) throw fail(read.problem);
  const { mode, uid } = statSync(path);
  if (process.platform !== "win32") {
    if ((mode & OTHERS_WRITE) !== 0) throw fail("can be written by others: run chmod 600 on it");
    if (uid !== 0 && uid !== process.getuid?.()) throw fail("belongs to another user");
  }
  let value: unknown;
  try {
    value = JSON.parse(read.content.toString("utf8"));
  } catch (error) {
    throw new TrustFileError(`${path} is not JSON: fix or remove it`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw fail("is not a JSON object: fix or remove it");
  }
  const entries = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  return new Map(entries);
}

/**
 * Puts the folders into the file, in one step: who reads it meanwhile gets the old or the
 * new ones. It is its owner's alone. A link stays one. Throws `TrustFileError`.
 */
export function writeTrustFile(path: string, folders: TrustedFolders): void {
  const text = `${JSON.stringify(Object.fromEntries(folders), undefined, INDENT)}\n`;
  const target = realPath(path);
  const draft = `${target}.${randomUUID()}.tmp`;
  try {
    mkdirSync(dirname(target), { recursive: true, mode: OWNER_ONLY_FOLDER });
    try {
      writeSynced(draft, text);
      renameSync(draft, target);
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
  } catch (error) {
    throw new TrustFileError(`${path} cannot be written (${describeCode(error)})`, {
      cause: error,
    });
  }
}

function writeSynced(path: string, text: string): void {
  const file = openSync(path, "wx", OWNER_ONLY);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
