import { randomBytes } from "node:crypto";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { asEnvironment, type Setting } from "./config.ts";
import type { Git } from "./program.ts";
import { checkedRef, GitError, literal } from "./repository.ts";

/** Where snapshots are kept: no branch, no tag, and out of the way of both. */
export const SNAPSHOT_PREFIX = "refs/gyre/snapshots/";
/** The oldest ones go when there are more. */
export const MAX_SNAPSHOTS = 200;
/** All files are read once. */
export const SNAPSHOT_TIMEOUT_MS = 300_000;

const ID_BYTES = 4;
/** Every byte is kept as it is: nothing is converted on the way in or out. */
const NO_CONVERSION = "* -text -eol -ident -filter -working-tree-encoding -crlf !eol\n";
/** What is said of names, modes and ignored files holds for the snapshot, too. */
const FILE_SETTINGS = [
  "core.filemode",
  "core.symlinks",
  "core.ignorecase",
  "core.precomposeunicode",
  "core.excludesfile",
] as const;

/** The files as they were at a time. */
export interface Snapshot {
  /** The full name of the ref that keeps it. */
  ref: string;
  commit: string;
}

export interface SnapshotOptions {
  /** What comes next, told in the message of the commit. */
  reason: string;
  /** Further commits that are to be kept with it: a branch or stash that is about to go. */
  keep?: readonly string[];
}

/**
 * Keeps all files of the working tree that git does not ignore, tracked or not, byte for
 * byte with their executable bits and links, as a commit under `refs/gyre/snapshots/`.
 * The commit before and what is staged are its parents. The index, the branch, the stash
 * and the files are left as they are. Not kept: ignored files, empty folders, and the
 * inside of other repositories. Throws where not everything could be kept.
 */
export async function takeSnapshot(git: Git, options: SnapshotOptions): Promise<Snapshot> {
  try {
    return await snapshotOf(git, options);
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    throw new GitError(
      `No snapshot could be taken, so nothing was done. ${error.message}`,
      error.exitCode,
    );
  }
}

function snapshotOf(git: Git, options: SnapshotOptions): Promise<Snapshot> {
  return withShadow(git, async (shadow) => {
    const head = await git.line(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]);
    const staged = await stagedTree(git, shadow);
    await addAll(shadow);
    await addTrackedButIgnored(git, shadow);
    const tree = await shadow.line(["write-tree"]);
    const parents = [
      ...(head === undefined ? [] : [head]),
      ...(staged === undefined ? [] : [await shadow.commit(staged, [], "What was staged")]),
      ...(options.keep ?? []),
    ];
    const commit = await shadow.commit(tree, parents, `Snapshot before ${options.reason}`);
    const ref = `${SNAPSHOT_PREFIX}${timeName(git.env.clock.now())}-${randomBytes(ID_BYTES).toString("hex")}`;
    // No commit may be there yet: a name that is taken is an error.
    await git.run(["update-ref", ref, commit, ""], { write: true });
    await dropOldest(git);
    return { ref, commit };
  });
}

/**
 * Puts the files of a snapshot back, or those at `paths` alone, from the workspace's root.
 * Files that are not in it stay. The index is left as it is. Gives the paths that were
 * written.
 */
export async function restoreSnapshot(
  git: Git,
  ref: string,
  paths: readonly string[] = [],
): Promise<string[]> {
  const commit = await git.line([
    "rev-parse",
    "--quiet",
    "--verify",
    "--end-of-options",
    `${checkedRef(ref)}^{commit}`,
  ]);
  if (commit === undefined) throw new GitError(`There is no snapshot ${ref}.`, null);
  return withShadow(git, async (shadow) => {
    await shadow.run(["read-tree", commit]);
    const listed = await shadow.read(["ls-files", "-z", "--", ...paths.map(literal)]);
    const names = listed.split("\0").filter((name) => name !== "");
    if (names.length === 0) {
      throw new GitError(`The snapshot ${ref} has no file at ${paths.join(", ")}.`, null);
    }
    await shadow.run(["checkout-index", "--force", "-z", "--stdin"], {
      input: names.map((name) => `${name}\0`).join(""),
    });
    return names;
  });
}

/** The snapshots that there are, the newest first. */
export async function listSnapshots(git: Git): Promise<Snapshot[]> {
  const format = "%(refname) %(objectname)";
  const listed = await git.read([
    "for-each-ref",
    "--sort=-refname",
    `--format=${format}`,
    SNAPSHOT_PREFIX,
  ]);
  return listed
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [ref = "", commit = ""] = line.split(" ");
      return { ref, commit };
    });
}

async function dropOldest(git: Git): Promise<void> {
  for (const { ref } of (await listSnapshots(git)).slice(MAX_SNAPSHOTS)) {
    await git.run(["update-ref", "-d", ref], { write: true });
  }
}

/** A time that sorts as a name. */
function timeName(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]/g, "").replace(".", "");
}

/** What is staged, as a tree; nothing where it cannot be one, as in the middle of a merge. */
async function stagedTree(git: Git, shadow: Shadow): Promise<string | undefined> {
  const copy = join(shadow.folder, "staged");
  try {
    await copyFile(join(git.folder, "index"), copy);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  return git.line(["write-tree"], {
    write: true,
    env: { GIT_INDEX_FILE: copy },
    writable: [shadow.folder],
    answers: [0, 128],
  });
}

/** All files but those of other repositories, of which git takes only those that have a commit. */
async function addAll(shadow: Shadow): Promise<void> {
  const add = ["add", "--all", "--", literal(".")];
  try {
    await shadow.run(add);
  } catch (error) {
    if (!(error instanceof GitError) || !/does not have a commit/.test(error.message)) throw error;
    const names = (await shadow.read(["ls-files", "-z", "--others", "--exclude-standard"]))
      .split("\0")
      // A folder is named only where it is a repository.
      .filter((name) => name.endsWith("/"));
    await shadow.run([
      ...add,
      ...names.map((name) => `:(top,literal,exclude)${name.slice(0, -1)}`),
    ]);
  }
}

/** Files that are tracked although they would be ignored. */
async function addTrackedButIgnored(git: Git, shadow: Shadow): Promise<void> {
  const listed = await git.read(["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"]);
  const tracked = new Set(listed.split("\0").filter((name) => name !== ""));
  if (tracked.size === 0) return;
  const deleted = await git.read(["ls-files", "-z", "--deleted"]);
  for (const name of deleted.split("\0")) tracked.delete(name);
  if (tracked.size === 0) return;
  await shadow.run(["add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"], {
    input: [...tracked].map((name) => `${literal(name)}\0`).join(""),
  });
}

/**
 * A repository of our own around the same files and objects: with an index, attributes
 * and settings that nobody else has written.
 */
interface Shadow {
  folder: string;
  run(args: readonly string[], more?: { input?: string }): Promise<void>;
  read(args: readonly string[]): Promise<string>;
  line(args: readonly string[]): Promise<string>;
  commit(tree: string, parents: readonly string[], message: string): Promise<string>;
}

async function withShadow<T>(git: Git, work: (shadow: Shadow) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(git.env.spoolFolder, "snapshot-"));
  try {
    await makeShadow(git, folder);
    const env = {
      GIT_DIR: folder,
      GIT_OBJECT_DIRECTORY: join(git.commonFolder, "objects"),
      GIT_INDEX_FILE: join(folder, "index"),
      GIT_AUTHOR_NAME: "Gyre",
      GIT_AUTHOR_EMAIL: "gyre@localhost",
      GIT_COMMITTER_NAME: "Gyre",
      GIT_COMMITTER_EMAIL: "gyre@localhost",
      ...asEnvironment(shadowSettings(git)),
    };
    const options = {
      write: true,
      env,
      writable: [folder],
      timeoutMs: SNAPSHOT_TIMEOUT_MS,
    };
    const read = (args: readonly string[], more: { input?: string } = {}): Promise<string> =>
      git.read(args, { ...options, ...more });
    const line = async (args: readonly string[], more: { input?: string } = {}): Promise<string> =>
      (await read(args, more)).trimEnd();
    return await work({
      folder,
      read,
      line,
      run: async (args, more = {}) => {
        await git.run(args, { ...options, ...more });
      },
      commit: (tree, parents, message) =>
        line(["commit-tree", tree, ...parents.flatMap((parent) => ["-p", parent]), "-F", "-"], {
          input: `${message}\n`,
        }),
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function makeShadow(git: Git, folder: string): Promise<void> {
  await mkdir(join(folder, "refs"));
  await mkdir(join(folder, "info"));
  await writeFile(join(folder, "HEAD"), "ref: refs/heads/none\n");
  const format = git.config.get("extensions.objectformat");
  const isPlain = format === undefined || format === "sha1";
  await writeFile(
    join(folder, "config"),
    isPlain
      ? "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
      : `[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = ${format}\n`,
  );
  await writeFile(join(folder, "info", "attributes"), NO_CONVERSION);
  await writeFile(join(folder, "info", "exclude"), await excludes(git));
}

/** What the repository itself ignores beside what its `.gitignore` files say. */
async function excludes(git: Git): Promise<string> {
  try {
    return await readFile(join(git.commonFolder, "info", "exclude"), "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}

function shadowSettings(git: Git): Setting[] {
  const settings: Setting[] = [
    ["core.hooksPath", "/dev/null"],
    ["core.fsmonitor", "false"],
    ["core.attributesFile", "/dev/null"],
    ["core.autocrlf", "false"],
    ["core.safecrlf", "false"],
    ["gc.auto", "0"],
    ["advice.addEmbeddedRepo", "false"],
    ["core.protectHFS", "true"],
    ["core.protectNTFS", "true"],
  ];
  for (const key of FILE_SETTINGS) {
    const value = git.config.get(key);
    if (value !== undefined) settings.push([key, value]);
  }
  return settings;
}
