import { spawn } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { type BigIntStats, type Stats, statSync } from "node:fs";
import { cleanPath, type GitIndexEntry, parseGitIndex } from "@gyre/tools";
import { MAX_FILE_BYTES } from "./lines/snapshot.ts";
import { isMissing } from "./lines/store.ts";

/** A longer index is not read. */
const MAX_INDEX_BYTES = 64 * 1024 * 1024;
/** A file that changed so short a time ago may change again without another time. */
const UNSETTLED_MS = 2_500;
const GIT_TIMEOUT_MS = 30_000;
/** Contents that are asked for at once: so many are in memory. */
const MAX_ASKED = 64;

/** What git knows of the files of a folder. */
export interface GitFiles {
  readonly folder: string;
  readonly entries: ReadonlyMap<string, GitIndexEntry>;
  /** The files in folders that say how git converts contents. */
  readonly attributes: readonly string[];
  /** The name of a content in git that is that of a file, byte for byte, if there is one. */
  cleanOid(path: string, stats: BigIntStats): string | undefined;
}

/**
 * The index of the repository at a folder, read again when it has changed. Of an older one,
 * `cleanOid` says nothing wrong: it compares what git noted with what the file is.
 */
export class GitIndex {
  readonly #root: string;
  #last: { identity: string; files: GitFiles | undefined } | undefined;

  constructor(root: string) {
    this.#root = root;
  }

  /** Undefined where there is none, or where it is elsewhere: nothing needs git, it saves copies. */
  async read(): Promise<GitFiles | undefined> {
    const identity = this.#last && identifyFiles(this.#root, this.#last.files);
    if (this.#last && this.#last.identity === identity) return this.#last.files;
    // It is looked up first: what is read may be newer, and is then read once more.
    const before = identifyFiles(this.#root, undefined);
    const files = await readGitFiles(this.#root);
    const isSame = before !== undefined && before === identifyFiles(this.#root, undefined);
    const now = isSame ? identifyFiles(this.#root, files) : undefined;
    this.#last = now === undefined ? undefined : { identity: now, files };
    return files;
  }
}

/** The files that say what git has and how it converts it. */
function listFiles(files: GitFiles | undefined): readonly string[] {
  return [".git/index", ".git/info/attributes", ".gitattributes"].concat(files?.attributes ?? []);
}

/** Another text after each change; nothing where a change may not show yet. */
function identifyFiles(root: string, files: GitFiles | undefined): string | undefined {
  const now = Date.now();
  let identity = "";
  for (const file of listFiles(files)) {
    const stats = statIfThere(join(root, file));
    if (stats && now - stats.ctimeMs < UNSETTLED_MS) return undefined;
    identity += stats ? `${stats.dev} ${stats.ino} ${stats.size} ${stats.ctimeMs},` : ",";
  }
  return identity;
}

function statIfThere(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function readGitFiles(root: string): Promise<GitFiles | undefined> {
  const folder = join(root, ".git");
  const path = join(folder, "index");
  try {
    const { size, mtimeNs } = await stat(path, { bigint: true });
    if (size > MAX_INDEX_BYTES) return undefined;
    const entries = parseGitIndex(await readFile(path));
    if (!entries) return undefined;
    const attributes: string[] = [];
    for (const name of entries.keys()) if (name.endsWith("/.gitattributes")) attributes.push(name);
    const isConverted = await hasFilters(root, attributes);
    return {
      folder,
      entries,
      attributes,
      cleanOid(name, stats) {
        const entry = entries.get(name);
        return !isConverted && entry && isClean(entry, stats, mtimeNs) ? entry.oid : undefined;
      },
    };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

const LOWER_HALF = 0xffff_ffffn;

/** Whether a file still is what git noted. `indexNs`: when the index was written. */
export function isClean(entry: GitIndexEntry, stats: BigIntStats, indexNs: bigint): boolean {
  return (
    entry.size === stats.size &&
    entry.mtimeNs === stats.mtimeNs &&
    entry.ctimeNs === stats.ctimeNs &&
    entry.ino === (stats.ino & LOWER_HALF) &&
    // What changed in the tick in which the index was written looks the same.
    entry.mtimeNs < indexNs &&
    entry.ctimeNs < indexNs
  );
}

/** Whether files may be something else in git than on the disk, of the same length. */
async function hasFilters(root: string, attributes: readonly string[]): Promise<boolean> {
  for (const file of [".git/info/attributes", ".gitattributes", ...attributes]) {
    const text = await readFile(join(root, file), "latin1").catch((error: unknown) => {
      if (isMissing(error)) return "";
      throw error;
    });
    if (/\bfilter\b|\bworking-tree-encoding\b/.test(text)) return true;
  }
  return false;
}

/** Contents by their names. What git does not have, or is too long, is missing. */
export async function readGitContents(
  folder: string,
  oids: readonly string[],
): Promise<Map<string, Buffer>> {
  const contents = new Map<string, Buffer>();
  for (let at = 0; at < oids.length; at += MAX_ASKED) {
    const output = await askGit(folder, oids.slice(at, at + MAX_ASKED));
    for (const [oid, bytes] of parseContents(output)) contents.set(oid, bytes);
  }
  return contents;
}

/** What the program gives; nothing where it is not there or fails. */
function askGit(folder: string, oids: readonly string[]): Promise<Buffer> {
  return new Promise((resolve) => {
    const git = spawn("git", ["--git-dir", folder, "cat-file", "--batch"], {
      cwd: homedir(),
      env: environment(dirname(folder)),
      stdio: ["pipe", "pipe", "ignore"],
      timeout: GIT_TIMEOUT_MS,
      killSignal: "SIGKILL",
    });
    const pieces: Buffer[] = [];
    let bytes = 0;
    git.stdout.on("data", (piece: Buffer) => {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > 2 * MAX_ASKED * MAX_FILE_BYTES) git.kill("SIGKILL");
    });
    git.on("error", () => resolve(Buffer.alloc(0)));
    git.on("close", () => resolve(Buffer.concat(pieces)));
    // It may have ended before it has read all.
    git.stdin.on("error", () => {});
    git.stdin.end(oids.map((oid) => `${oid}\n`).join(""));
  });
}

/** Nothing of the repository's own is run for this, and nothing is fetched. */
function environment(workspace: string): Record<string, string> {
  return {
    PATH: cleanPath(process.env["PATH"], workspace),
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_NO_LAZY_FETCH: "1",
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_ALLOW_PROTOCOL: "none",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
  };
}

/** `NAME blob LENGTH`, a line end, the content, a line end; or `NAME missing`. */
function* parseContents(output: Buffer): Generator<[string, Buffer]> {
  for (let at = 0; at < output.length;) {
    const end = output.indexOf("\n", at);
    if (end < 0) return;
    const [oid = "", type, length] = output.toString("latin1", at, end).split(" ");
    at = end + 1;
    if (length === undefined) continue;
    const stop = at + Number(length);
    if (stop > output.length) return;
    if (type === "blob") yield [oid, output.subarray(at, stop)];
    at = stop + 1;
  }
}
