import { constants, existsSync } from "node:fs";
import { cp, type FileHandle, lstat, open, readlink, rename, rm } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { errorMessage } from "@gyre/ai";
import type { ToolEnv } from "../contract/env.ts";
import { realPlace } from "../sandbox/places.ts";
import { findStart, listAdded } from "../workspace/added.ts";
import { pathIn } from "../workspace/ignore-files.ts";
import { ANYWHERE, PARTLY_PROTECTED } from "../workspace/protected.ts";
import type { Entry } from "../workspace/types.ts";

const LOOKED_INTO = ["", ...PARTLY_PROTECTED];

/** Leads git to another config. It makes none itself in the folder of a whole repository. */
const GIT_POINTER = "commondir";

/** Linux's `O_PATH`, which Node does not name: a hold that needs no right to read. */
const O_PATH = 0x200000;
/** Where folders are held while something in them is moved. */
const HOLDS = process.platform === "linux";

/**
 * What is there of the protected places at the top of the workspace, which instruct agents and
 * editors what to do. A sandbox keeps what is there from being changed, and cannot keep what
 * is missing from being made: so what a command made is put aside when it has ended. A new
 * repository's own files stay: git is to be used.
 */
export async function protectedEntries({ workspace }: ToolEnv): Promise<string[]> {
  const found: string[] = [];
  const links = new Set<string>();
  for (const folder of listLookedInto(workspace)) {
    // What is behind a link has another place; the link itself is what counts.
    if (links.has(folder)) continue;
    const start = findStart(workspace, folder);
    const inner = folder === start ? "" : folder.slice(start === "" ? 0 : start.length + 1);
    const entries = await workspace
      .list(folder === "" ? "." : folder)
      // Missing; or a command took the right to list it, and left that to use what is in it.
      .catch(() => knownEntries(join(workspace.root, folder), inner));
    for (const { name, kind } of entries) {
      const path = pathIn(folder, name);
      if (name === ".git" || (inner === ".git" && name.toLowerCase() !== GIT_POINTER)) continue;
      // A job may put a link in the place of a folder meanwhile; the link is found then.
      const place = await workspace.resolve(path, { keepLink: true }).catch(() => undefined);
      const readOnly = place?.readOnly ?? false;
      const isLinkedFolder =
        kind === "link" && LOOKED_INTO.includes(pathIn(inner, name).toLowerCase());
      if (isLinkedFolder) links.add(path);
      if (readOnly || isLinkedFolder) found.push(path);
    }
  }
  return found;
}

/** The folders of the workspace, and of those that were added to it, in which there may be protected places. */
function listLookedInto(workspace: ToolEnv["workspace"]): string[] {
  const starts = ["", ...listAdded(workspace)];
  return starts.flatMap((start) =>
    LOOKED_INTO.map((inner) => (inner === "" ? start : pathIn(start, inner))),
  );
}

/** Which of the names that are known to be protected are in a folder. */
async function knownEntries(at: string, folder: string): Promise<Entry[]> {
  const places = [
    ...ANYWHERE.map((names) => names.join("/")),
    ...PARTLY_PROTECTED,
    `.git/${GIT_POINTER}`,
  ].filter((path) => path !== ".git");
  const names = places
    .filter((path) => dirname(path) === (folder === "" ? "." : folder))
    .map((path) => basename(path));
  const found: Entry[] = [];
  for (const name of names) {
    const stats = await lstat(join(at, name)).catch(() => undefined);
    if (stats) found.push({ name, kind: stats.isSymbolicLink() ? "link" : "other" });
  }
  return found;
}

/** What a command made and what was put aside after it. */
export interface PutAside {
  /** From the root of the workspace. */
  path: string;
  /** Where it is now. */
  now?: string;
  /** Why it is still where it was. */
  failure?: string;
  /** What is wrong with it: the rest of a sentence. */
  why: string;
  /** It was there before, and was changed. */
  isChange: boolean;
}

/** Puts aside what came since `before`. */
export async function putAside(env: ToolEnv, before: readonly string[]): Promise<PutAside[]> {
  const made = (await protectedEntries(env)).filter((path) => !before.includes(path));
  const why = "which instructs agents or editors, and which tools may not change";
  const moved: PutAside[] = [];
  for (const path of made) {
    const about = { path, why, isChange: false };
    try {
      moved.push({ ...about, now: await moveAside(env, join(env.workspace.root, path)) });
    } catch (error) {
      moved.push({ ...about, failure: errorMessage(error) });
    }
  }
  return moved;
}

/** Where the files lead that git's settings name and that the sandbox cannot hold: missing ones, and links. */
export function followNamed(files: readonly string[]): Map<string, string | undefined> {
  const followed = files.map((path) => [path, followPath(path)] as const);
  return new Map(followed.filter(([path, real]) => real !== path));
}

/** Puts aside those that lead elsewhere since then. */
export async function putNamedAside(
  env: ToolEnv,
  before: ReadonlyMap<string, string | undefined>,
): Promise<PutAside[]> {
  const moved: PutAside[] = [];
  for (const [path, old] of before) {
    const now = followPath(path);
    if (now === undefined || now === old) continue;
    const why = "which the settings of git name: it runs what is there";
    const about = { path: relative(env.workspace.root, path), why, isChange: old !== undefined };
    try {
      moved.push({ ...about, now: await moveAside(env, path) });
    } catch (error) {
      moved.push({ ...about, failure: errorMessage(error) });
    }
  }
  return moved;
}

function followPath(path: string): string | undefined {
  return existsSync(path) ? realPlace(path) : undefined;
}

/** Moves what is at a path of the workspace to the agent's own folder; gives where it is then. */
export async function moveAside(env: ToolEnv, path: string): Promise<string> {
  return moveFrom(env, dirname(path), basename(path));
}

/** The same for what is in a folder whose path may be no text. */
export async function moveFrom(
  env: ToolEnv,
  folder: string | Buffer,
  name: string,
): Promise<string> {
  const now = join(env.spoolFolder, `aside-${globalThis.crypto.randomUUID()}-${name}`);
  await move(folder, name, now);
  return now;
}

/**
 * A background job may put a link in the place of the folder meanwhile, to have something
 * outside moved: so the folder is opened, without following one, and reached by its handle.
 */
async function move(from: string | Buffer, name: string, to: string): Promise<void> {
  const folder = HOLDS ? await holdFolder(from) : undefined;
  const held = folder ? `/proc/self/fd/${folder.fd}/${name}` : `${from.toString()}/${name}`;
  try {
    const real = folder && (await readlink(`/proc/self/fd/${folder.fd}`, { encoding: "buffer" }));
    if (real && !real.equals(Buffer.from(from))) {
      throw new Error(`"${from.toString()}/${name}" is behind a link now, and was not put aside.`);
    }
  } catch (error) {
    await folder?.close();
    throw error;
  }
  try {
    await rename(held, to);
  } catch {
    // On another file system.
    await cp(held, to, { recursive: true, verbatimSymlinks: true });
    await rm(held, { recursive: true, force: true });
  } finally {
    await folder?.close();
  }
}

function holdFolder(path: string | Buffer): Promise<FileHandle> {
  return open(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
}
