import { existsSync, type FSWatcher, lstatSync, readdirSync, unlinkSync, watch } from "node:fs";
import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readlink,
  rename,
  rm,
  symlink,
  unlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { errorMessage } from "@gyre/ai";
import type { ToolEnv } from "../../contract/env.ts";
import { openClosedFolder } from "../../process/closed-folder.ts";
import { removeFolder } from "../../process/remove-folder.ts";
import { isWithin } from "../../sandbox/places.ts";
import type { ShownPlace } from "../../sandbox/sandbox.ts";
import { counted } from "../../text/text.ts";
import { listedName } from "../../text/truncate.ts";
import { IN_GIT } from "../../workspace/protected.ts";
import { carrySettings, readConfig } from "./carry-settings.ts";
import { copyPlain, copyTree, makeIfMissing } from "./held-tree.ts";
import { Mirror } from "./mirror.ts";
import { removeExecLines } from "./rebase-todo.ts";
import { TreeMirror } from "./tree-mirror.ts";
import { locateRepository, type RepositoryPlace } from "../locate.ts";

/** Where commands see the real folder of git, inside of the private one. */
export const SHARED = "gyre-shared";
const CONFIGS = ["config", "config.worktree"] as const;
const HOOKS = "hooks";
/** Folders that git makes and removes as a whole: commands get copies of them. */
const REBASE = "rebase-merge";
const PASSING = [REBASE, "rebase-apply", "sequencer", "NOTES_MERGE_WORKTREE"] as const;
/** Folders that git makes when it first needs them, and files that it replaces: always shared. */
const SHARED_FOLDERS = ["info", "logs", "modules", "worktrees"];
const SHARED_FILES = ["packed-refs", "shallow"];
/** Files that commands have copies of, which are kept the same while they run. */
const MIRRORED: readonly string[] = ["HEAD", "index", ...PASSING];
/** Parts of an index, which have to be there before it is. */
const INDEX_PART = /^sharedindex\./;
const HEAD_TEXT = /^(?:ref: refs\/[^\s~^:?*[\\]+|[0-9a-f]{40}|[0-9a-f]{64})\s*$/;
/** At the top of a folder of git; far more than git makes. */
const MAX_ENTRIES = 2_000;
/** A config by which git reads another one. */
const READS_WORKTREE = /worktreeconfig/i;
/** Leads git to another folder. It makes none in the folder of a whole repository. */
const POINTER = "commondir";
/** Keys that are named in a result. */
const MAX_NAMED = 12;

/** The folder of git as one command sees it. */
export interface GitView {
  /** Absent where there is no repository, or an unusual one: then nothing is private. */
  place?: RepositoryPlace;
  shown: readonly ShownPlace[];
  /** Places outside of the workspace that are to be seen, wherever they are. */
  visible: readonly string[];
  /**
   * To be called when the command has ended: carries over what it changed. Gives sentences for
   * the result.
   */
  end(): Promise<string[]>;
}

interface State {
  place: RepositoryPlace;
  /** Made for it, in the spool folder. */
  folder: string;
  /** What commands see as the folder of git. */
  view: string;
  /** For copies; no command can change it. */
  work: string;
  users: number;
  configs: Map<string, string>;
  mirrors: ReadonlyMap<string, Mirror | TreeMirror>;
  /** A config that was made so that no command makes it. */
  emptyFile?: string;
  /** Has "exec" where such lines of a rebase were not carried over. */
  shortened: Set<string>;
  /** Names of what the user and a command changed at the same time. */
  conflicts: Set<string>;
  /** Look at both folders while commands run. */
  watchers: FSWatcher[];
  /** Names that are links to the real files. */
  links: Set<string>;
  /** By name: files that were carried over. */
  carried: Map<string, string>;
}

/**
 * Gives sandboxed commands a private top level of the repository's git folder: git replaces its
 * config by renaming a file over it, which no mount of a single file allows. What is below (objects,
 * refs, logs) is the real one; most files are links to the real ones, which git locks and replaces
 * where they are. HEAD and the index, which git renames across its folder, and what it keeps of a
 * rebase are copies that are kept the same. All commands that run at once see one config, which is a
 * copy.
 */
export class PrivateGit {
  readonly #env: ToolEnv;
  readonly #states = new Map<string, State>();
  /** What came of jobs, for the next result. */
  readonly #pending: string[] = [];
  /** Commands that run and have no private folder. */
  #without = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(env: ToolEnv) {
    this.#env = env;
  }

  /** To be called before a command. */
  open(): Promise<GitView> {
    return this.#inTurn(async () => {
      const place = this.#without > 0 ? undefined : locateRepository(this.#env.workspace.root);
      if (place === undefined || !isUsual(place.commonFolder)) return this.#openWithout();
      const state = this.#states.get(place.commonFolder) ?? (await this.#create(place));
      state.users += 1;
      const shown = await fill(state);
      let ended: Promise<string[]> | undefined;
      const end = (): Promise<string[]> => (ended ??= this.#inTurn(() => this.#end(state)));
      const { root } = this.#env.workspace;
      const around = [place.tree, dirname(place.commonFolder)];
      const visible = [...new Set(around)].filter((path) => !isWithin(path, root));
      return { place, shown, visible, end };
    });
  }

  /**
   * For a command to which no folder of git is mounted. As long as it runs it could put a link in the
   * place of one that it makes, and have something else mounted for the others.
   */
  #openWithout(): GitView {
    this.#without += 1;
    let isOpen = true;
    const end = (): Promise<string[]> => {
      if (isOpen) this.#without -= 1;
      isOpen = false;
      return Promise.resolve([]);
    };
    return { shown: [], visible: [], end };
  }

  /** Gives what ends the view of a job: what there is to say is in the next result. */
  endLater(view: GitView): () => Promise<void> {
    return async () => {
      this.#pending.push(...(await view.end().catch((error: unknown) => [errorMessage(error)])));
    };
  }

  /** One after the other: they share what they change. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(run);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #create(place: RepositoryPlace): Promise<State> {
    const { commonFolder } = place;
    await mkdir(this.#env.spoolFolder, { recursive: true, mode: 0o700 });
    const folder = await mkdtemp(join(this.#env.spoolFolder, "git-"));
    const [view, work] = [join(folder, "view"), join(folder, "work")];
    await mkdir(view);
    await mkdir(work);
    await mkdir(join(view, SHARED));
    for (const name of [HOOKS, ...SHARED_FOLDERS]) {
      const at = join(commonFolder, name);
      if (lstatSync(at, { throwIfNoEntry: false }) === undefined)
        await makeIfMissing(() => mkdir(at));
    }
    const configs = new Map<string, string>();
    const worktree = join(commonFolder, "config.worktree");
    // git would read it: what is there can be held, what is missing cannot.
    const isRead = READS_WORKTREE.test(await readConfig(join(commonFolder, "config")));
    const isMissing = isRead && lstatSync(worktree, { throwIfNoEntry: false }) === undefined;
    const isMade =
      isMissing && (await makeIfMissing(() => writeFile(worktree, "", { flag: "wx" })));
    for (const name of CONFIGS) {
      const text = await readConfig(join(commonFolder, name));
      configs.set(name, text);
      if (text !== "") await writeFile(join(view, name), text, "latin1");
    }
    const shortened = new Set<string>();
    const state: State = {
      ...{ place, folder, view, work, users: 0, configs },
      mirrors: createMirrors(commonFolder, view, work, shortened),
      shortened,
      ...(isMade && { emptyFile: worktree }),
      watchers: [],
      conflicts: new Set(),
      links: new Set(),
      carried: new Map(),
    };
    await syncMirrors(state);
    state.watchers = [view, commonFolder].flatMap((path) => this.#watch(path, state));
    this.#states.set(commonFolder, state);
    return state;
  }

  /** Without it (there may be too many watches on the machine), commands see what was there at their start. */
  #watch(path: string, state: State): FSWatcher[] {
    let isDue = false;
    const hadPointer = existsSync(join(path, POINTER));
    const sync = async (): Promise<void> => {
      isDue = false;
      if (state.users > 0) await syncMirrors(state);
    };
    try {
      const watcher = watch(path, { persistent: false }, (_event, name) => {
        // The user's git may look at any moment: this does not wait for its turn.
        if (name === POINTER && !hadPointer) removePointer(join(path, POINTER));
        if (isDue || (name !== null && !isMirrored(name))) return;
        isDue = true;
        // What fails here is tried again, and reported, when the command ends.
        this.#inTurn(sync).catch(() => undefined);
      });
      watcher.on("error", () => watcher.close());
      return [watcher];
    } catch {
      return [];
    }
  }

  async #end(state: State): Promise<string[]> {
    const notes = this.#pending.splice(0);
    // A command may have closed it, and all that is in it would be lost.
    openClosedFolder(state.view);
    const steps = [
      () => this.#carryConfigs(state),
      () => carryFiles(state),
      () => endMirrors(state),
    ];
    for (const step of steps) {
      try {
        notes.push(...(await step()));
      } catch (error) {
        notes.push(
          `What the command changed in ${listedName(state.place.commonFolder)} could not be carried over ` +
            `from its private copy (${errorMessage(error)}): say so to the user.`,
        );
      }
    }
    state.users -= 1;
    if (state.users === 0) {
      this.#states.delete(state.place.commonFolder);
      for (const watcher of state.watchers) watcher.close();
      if (state.emptyFile !== undefined) await removeEmpty(state.emptyFile);
      await removeFolder(state.folder);
    }
    return notes;
  }

  async #carryConfigs(state: State): Promise<string[]> {
    const notes: string[] = [];
    for (const name of CONFIGS) {
      const before = state.configs.get(name) ?? "";
      const after = await readConfig(join(state.view, name));
      if (before === after) continue;
      if (lstatSync(join(state.view, name), { throwIfNoEntry: false }) === undefined) {
        state.configs.set(name, after);
        notes.push(`The command removed .git/${name}: the user's was kept.`);
        continue;
      }
      state.configs.set(name, after);
      const { dropped, kept } = await carrySettings({
        ...{ before, after, work: state.work, isShared: state.users > 1 },
        path: join(state.place.commonFolder, name),
        beside: join(state.place.commonFolder, HOOKS),
        searchPath: this.#env.environment["PATH"] ?? "",
      });
      if (dropped.length > 0) {
        notes.push(
          `Not kept in .git/${name}, because git may run or reach something by it: ${listKeys(dropped)}. Ask the user to set it.`,
        );
      }
      if (kept.length > 0) {
        notes.push(
          `Not kept in .git/${name}, because the user changed it meanwhile: ${listKeys(kept)}.`,
        );
      }
    }
    return notes;
  }
}

function listKeys(keys: readonly string[]): string {
  const named = keys.slice(0, MAX_NAMED).map((key) => listedName(key));
  const more = keys.length - named.length;
  return named.join(", ") + (more > 0 ? ` and ${counted(more, "other")}` : "");
}

/** Whether a folder of git is as git makes it, and the user's own. */
function isUsual(folder: string): boolean {
  const at = (name: string) => lstatSync(join(folder, name), { throwIfNoEntry: false });
  const { config, hooks } = { config: at("config"), hooks: at(HOOKS) };
  const worktree = at("config.worktree");
  return (
    (at("HEAD")?.isFile() ?? false) &&
    (config?.isFile() ?? false) &&
    (worktree?.isFile() ?? true) &&
    (hooks?.isDirectory() ?? true) &&
    readdirSync(folder).length <= MAX_ENTRIES &&
    lstatSync(folder).uid === process.getuid?.()
  );
}

/** Shows what is in the real folder, and gives what has to be mounted for it. */
async function fill(state: State): Promise<ShownPlace[]> {
  const { view, links } = state;
  const real = state.place.commonFolder;
  const shown: ShownPlace[] = [
    { at: real, from: view, rule: "writable" },
    { at: join(real, SHARED), from: real, rule: "writable" },
  ];
  await syncMirrors(state);
  const addLink = async (name: string): Promise<void> => {
    if (links.has(name) || lstatSync(join(view, name), { throwIfNoEntry: false })) return;
    await symlink(join(SHARED, name), join(view, name));
    links.add(name);
  };
  for (const entry of await readdir(real, { withFileTypes: true })) {
    const { name } = entry;
    // A lock is the user's: of what is a link, git makes the lock where the link leads.
    if (isMirrored(name) || name === SHARED || name === POINTER || name.endsWith(".lock")) continue;
    const isHeld = IN_GIT.has(name.toLowerCase());
    if (isHeld) shown.push(showAt(real, join(SHARED, name), name, "readOnly"));
    if (CONFIGS.some((config) => config === name)) continue;
    if (entry.isDirectory()) {
      await mkdir(join(view, name), { recursive: true });
      shown.push(showAt(real, name, name, isHeld ? "readOnly" : "writable"));
    } else if (entry.isFile() || entry.isSymbolicLink()) await addLink(name);
  }
  for (const name of SHARED_FILES) await addLink(name);
  return shown;
}

function showAt(real: string, at: string, name: string, rule: ShownPlace["rule"]): ShownPlace {
  return { at: join(real, at), from: join(real, name), rule };
}

function isMirrored(name: string): boolean {
  return MIRRORED.includes(name.replace(/\.lock$/, ""));
}

function createMirrors(
  real: string,
  view: string,
  work: string,
  shortened: Set<string>,
): State["mirrors"] {
  const name = (folder: string): string =>
    join(folder, `gyre-${globalThis.crypto.randomUUID()}.sample`);
  const describe = (file: string) => ({
    ...{ real: join(real, file), own: join(view, file) },
    besideReal: () => name(join(real, HOOKS)),
    besideOwn: () => name(work),
  });
  const clean = async (copy: string): Promise<void> => {
    if (await removeExecLines(copy)) shortened.add("exec");
    else shortened.delete("exec");
  };
  const accepts = (bytes: Buffer): boolean => HEAD_TEXT.test(bytes.toString("latin1"));
  return new Map<string, Mirror | TreeMirror>([
    ["index", new Mirror({ ...describe("index"), sharesLock: true })],
    ["HEAD", new Mirror({ ...describe("HEAD"), accepts })],
    ...PASSING.map(
      (file) =>
        [file, new TreeMirror({ ...describe(file), ...(file === REBASE && { clean }) })] as const,
    ),
  ]);
}

async function syncMirrors(state: State): Promise<void> {
  for (const name of await readdir(state.view)) {
    const isNew = INDEX_PART.test(name) && !state.links.has(name);
    if (isNew) await carryFile(state, name);
  }
  for (const [name, mirror] of state.mirrors) {
    // What fails here is tried again, and reported, when the command ends.
    const how = await mirror.sync().catch(() => undefined);
    if (how === "conflict") state.conflicts.add(name);
  }
}

async function endMirrors(state: State): Promise<string[]> {
  const notes: string[] = [];
  for (const [name, mirror] of state.mirrors) {
    const how = await mirror.sync(state.users === 1);
    if (how === "conflict" || state.conflicts.delete(name)) {
      notes.push(
        `The command and the user changed .git/${name} at the same time: the user's was kept. Look at git status.`,
      );
    }
    const isInProgress = name === REBASE && existsSync(join(state.place.commonFolder, name));
    if (isInProgress && state.shortened.delete("exec")) {
      notes.push(
        "The lines with exec were taken out of what is left of the rebase, because the user may continue it: run these commands yourself.",
      );
    }
    if (how === "refused")
      notes.push(`The command left a ${name} that git cannot read: it was not kept.`);
    if (how === "busy" && state.users === 1) {
      notes.push(`.git/${name} is locked: what the command changed in it was not kept.`);
    }
  }
  return notes;
}

/** Makes something where no command can change it, and moves it to its name in the real folder. */
async function place(
  { place: { commonFolder } }: State,
  name: string,
  make: (path: string) => Promise<void>,
): Promise<void> {
  const made = join(commonFolder, HOOKS, `gyre-${globalThis.crypto.randomUUID()}.sample`);
  try {
    await make(made);
    await rename(made, join(commonFolder, name));
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

/** What commands made, replaced or removed at the top level. */
async function carryFiles(state: State): Promise<string[]> {
  const { view, links } = state;
  const real = state.place.commonFolder;
  const dropped: string[] = [];
  const names = new Set<string>();
  for (const entry of await readdir(view, { withFileTypes: true })) {
    const { name } = entry;
    names.add(name);
    if (isMirrored(name) || name === SHARED || CONFIGS.some((config) => config === name)) continue;
    if (IN_GIT.has(name.toLowerCase())) {
      if (name !== HOOKS) dropped.push(name);
    } else if (entry.isSymbolicLink()) {
      const isOurs = (await readlink(join(view, name))) === join(SHARED, name);
      if (!isOurs) dropped.push(name);
    } else if (entry.isFile() && !name.endsWith(".lock")) await carryFile(state, name);
    else if (entry.isDirectory()) await carryFolder(state, name);
  }
  for (const name of links) {
    if (names.has(name)) continue;
    links.delete(name);
    await unlink(join(real, name)).catch(ignoreMissing);
  }
  if (dropped.length === 0) return [];
  return [`Not kept in .git, because it leads git elsewhere: ${listKeys(dropped)}.`];
}

async function carryFile(state: State, name: string): Promise<void> {
  const { ino, ctimeNs } = await lstat(join(state.view, name), { bigint: true });
  const identity = `${ino} ${ctimeNs}`;
  if (state.carried.get(name) === identity) return;
  await place(state, name, (made) => copyPlain(join(state.view, name), made));
  state.carried.set(name, identity);
  state.links.add(name);
}

async function carryFolder(state: State, name: string): Promise<void> {
  const from = join(state.view, name);
  const to = join(state.place.commonFolder, name);
  // The real one is mounted over it.
  if (lstatSync(to, { throwIfNoEntry: false }) !== undefined) return;
  await place(state, name, async (made) => {
    await copyTree(from, made);
    await chmod(made, 0o755);
  });
}

function removePointer(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It is gone, or a folder, which leads git nowhere.
  }
}

async function removeEmpty(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined);
  if (stats?.isFile() && stats.size === 0) await unlink(path).catch(ignoreMissing);
}

function ignoreMissing(error: unknown): void {
  const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
  if (!isMissing) throw error;
}
