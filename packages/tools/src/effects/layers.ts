import { createHash, randomBytes } from "node:crypto";
import { execFile } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { errorMessage } from "@gyre/ai";
import { HOST_NAME, KEEPING } from "../process/leftovers.ts";
import { removeFolder } from "../process/remove-folder.ts";
import { describeHost, isHostGone } from "@gyre/ai/programs";
import { isWithin } from "../sandbox/places.ts";
import type { ProgramSpec, Sandbox, SandboxPolicy } from "../sandbox/sandbox.ts";
import { readable } from "./byte-path.ts";
import type { Effect } from "./effect.ts";
import { findEffects } from "./find-effects.ts";
import { readJournal } from "./journal.ts";
import { ConflictError, keepLayer, undoLayer, UPPER } from "./keep.ts";
import {
  findLayerPrograms,
  type LayerPrograms,
  listLayer,
  listStarter,
  MOUNTED,
} from "./layer-programs.ts";
import { findMount, findMountBelow, listMounts } from "./mounts.ts";

const OWNER_ONLY = 0o700;
/** Longer than a tick of the clock that files are stamped by: what was changed before has an older stamp. */
const TICK_MS = 12;
const PROBE_TIMEOUT_MS = 120_000;
/** Layers that were kept can be undone for so long, and so many of a workspace. */
export const KEPT_MS: number = 7 * 24 * 60 * 60 * 1000;
export const MAX_KEPT = 20;
/** In the folder of a layer that was kept: what ran, and when. */
const NOTE = "kept.json";

/** Where layers over one workspace can be made. */
export interface LayerHome {
  /** The workspace. */
  root: string;
  /** The folder of its layers, ours alone. Programs must not see it. */
  folder: string;
  /** For notes on what is being kept. */
  stateFolder: string;
  programs: LayerPrograms;
}

export interface LayerOptions {
  root: string;
  /** A private folder of ours; layers are in it where it is on the same mount as the workspace. */
  stateFolder: string;
  sandbox: Sandbox;
  /** Default: those of this system. */
  programs?: LayerPrograms | { missing: string };
}

/**
 * Finds a place for layers over a workspace and tries them out there, with all that is asked of them later. Else
 * why there can be none, as a sentence.
 */
export async function openLayers(options: LayerOptions): Promise<LayerHome | { why: string }> {
  const { root, stateFolder, sandbox, programs = findLayerPrograms() } = options;
  if (sandbox.kind !== "bubblewrap") return { why: "A layer needs the sandbox bubblewrap." };
  if ("missing" in programs) return { why: `A layer needs the program ${programs.missing}.` };
  const mounts = listMounts();
  const nested = findMountBelow(mounts, root);
  if (nested) return { why: `Something is mounted in the workspace, at "${readable(nested.at)}".` };
  const own = findMount(mounts, root);
  if (own?.type === "overlay") return { why: "The workspace is on an overlay file system." };
  const isUsable = (path: string): boolean =>
    !isWithin(path, root) && !isWithin(root, path) && findMount(mounts, path)?.id === own?.id;
  const places = [join(stateFolder, "layers"), ...listNeighbors(root)].filter(isUsable);
  const hash = createHash("sha256").update(root).digest("hex").slice(0, 16);
  for (const place of places) {
    const folder = join(place, hash);
    const isMade = await mkdir(folder, { recursive: true, mode: OWNER_ONLY }).then(
      () => true,
      () => false,
    );
    if (!isMade || !isOurs(place)) continue;
    const home: LayerHome = { root, folder, stateFolder, programs };
    const failure = await tryOut(home, sandbox);
    return failure === undefined ? home : { why: `A layer cannot be made here: ${failure}` };
  }
  return { why: "Beside the workspace there is no folder on its file system to write to." };
}

/** A folder that others could write to could lead elsewhere by now. */
function isOurs(path: string): boolean {
  const { uid, mode } = statSync(path);
  return uid === process.getuid?.() && (mode & 0o022) === 0;
}

function listNeighbors(root: string): string[] {
  const places: string[] = [];
  for (let at = dirname(root); ; at = dirname(at)) {
    places.push(join(at, ".gyre-layers"));
    if (at === dirname(at)) return places;
  }
}

/** A layer over a workspace, for one command. */
export class Layer {
  readonly home: LayerHome;
  readonly folder: string;
  readonly #since: bigint;

  private constructor(home: LayerHome, folder: string, since: bigint) {
    this.home = home;
    this.folder = folder;
    this.#since = since;
  }

  static async create(home: LayerHome): Promise<Layer> {
    const name = `${Date.now().toString(36)}-${randomBytes(4).toString("hex")}`;
    const folder = join(home.folder, name);
    await mkdir(folder, { mode: OWNER_ONLY });
    const host = describeHost();
    if (host !== undefined) await writeFile(join(folder, HOST_NAME), host);
    await mkdir(join(folder, "low"));
    await mkdir(join(folder, UPPER));
    // The workspace has the rights of the folder that lies over it.
    await chmod(join(folder, UPPER), (await stat(home.root)).mode & 0o7777);
    await setTimeout(TICK_MS);
    await mkdir(join(folder, "work"));
    const { ctimeNs } = await stat(join(folder, "work"), { bigint: true });
    return new Layer(home, folder, ctimeNs);
  }

  /** A policy by which a program has this layer over the workspace. In there this process is another user. */
  cover(policy: SandboxPolicy): SandboxPolicy {
    const { programs, root, folder } = this.home;
    const argv = listStarter(programs, root, this.folder);
    const [uid = 0, gid = 0] = [process.getuid?.(), process.getgid?.()];
    return { ...policy, hidden: [...policy.hidden, folder], starter: { argv, uid, gid } };
  }

  /** Whether it was there when the program began. */
  get wasMounted(): boolean {
    return existsSync(join(this.folder, MOUNTED));
  }

  get since(): bigint {
    return this.#since;
  }

  /** What the command did. It has ended. */
  async findEffects(): Promise<Effect[]> {
    const { root, programs } = this.home;
    const listing = await listLayer(programs, root, this.folder);
    return findEffects(root, join(this.folder, UPPER), listing);
  }

  /** See `keepLayer`. It can be undone from then on, by `undoKept`. */
  async keep(effects: readonly Effect[], title: string): Promise<void> {
    const { root } = this.home;
    const note = { title, at: Date.now(), effects: effects.length };
    await writeFile(join(this.folder, NOTE), JSON.stringify(note));
    await inProgress(this.home, this.folder, () =>
      keepLayer({ root, folder: this.folder, since: this.#since }, effects),
    );
  }

  /** Throws the layer away. One that is half kept stays: its backup is all that is left of some files. */
  async remove(): Promise<void> {
    await removeLayer(this.folder);
  }
}

async function removeLayer(folder: string): Promise<void> {
  if (readJournal(folder)?.state === "open") return;
  // Overlayfs makes it closed to all. Not there where the layer was never mounted.
  const own = join(folder, "work", "work");
  if (existsSync(own)) await chmod(own, OWNER_ONLY);
  await removeFolder(folder);
}

/** With a note in the state folder, by which the next start finds what was cut off. */
async function inProgress<T>(
  { root, stateFolder }: LayerHome,
  folder: string,
  work: () => Promise<T>,
): Promise<T> {
  const note = join(stateFolder, `${KEEPING}${randomBytes(8).toString("hex")}.json`);
  await writeFile(note, JSON.stringify({ root, folder, host: describeHost() }), { mode: 0o600 });
  try {
    return await work();
  } finally {
    if (readJournal(folder)?.state !== "open") await rm(note, { force: true });
  }
}

/** A layer that was kept, and can be undone. */
export interface KeptLayer {
  folder: string;
  /** The command. */
  title: string;
  at: number;
  effects: number;
}

/** The layers that were kept, the newest first. */
export async function listKept({ folder }: Pick<LayerHome, "folder">): Promise<KeptLayer[]> {
  const kept: KeptLayer[] = [];
  for (const name of await readdir(folder)) {
    const layer = join(folder, name);
    if (readJournal(layer)?.state !== "kept") continue;
    const note: unknown = JSON.parse(await readFile(join(layer, NOTE), "utf8"));
    kept.push({ ...(note as Omit<KeptLayer, "folder">), folder: layer });
  }
  return kept.toSorted((one, other) => other.at - one.at);
}

/** Takes back what a layer did when it was kept. See `undoLayer`. */
export async function undoKept(home: LayerHome, { folder }: KeptLayer): Promise<void> {
  const { root } = home;
  const left = await inProgress(home, folder, () => undoLayer({ root, folder }));
  if (left.length > 0) throw new ConflictError("Not all of it was undone", left);
  await removeLayer(folder);
}

/**
 * Removes layers that processes left which are no more, and those that were kept long ago. What was half kept
 * is for `recoverLayers`.
 */
export async function sweepLayers(home: LayerHome, now: number = Date.now()): Promise<void> {
  const kept = await listKept(home);
  const old = kept.filter(({ at }, index) => index >= MAX_KEPT || now - at > KEPT_MS);
  for (const { folder } of old) await removeLayer(folder);
  for (const name of await readdir(home.folder)) {
    const layer = join(home.folder, name);
    const host = await readFile(join(layer, HOST_NAME), "utf8").catch(() => undefined);
    const isLeft = readJournal(layer)?.state !== "kept" && host !== undefined && isHostGone(host);
    if (isLeft) await removeLayer(layer);
  }
}

/**
 * Undoes what was cut off while it was kept: a process was killed, say. Looks at the notes in the state folder;
 * gives sentences for the user.
 */
export async function recoverLayers(stateFolder: string): Promise<string[]> {
  const sentences: string[] = [];
  for (const name of await readdir(stateFolder)) {
    if (!name.startsWith(KEEPING)) continue;
    const path = join(stateFolder, name);
    const note = readNote(await readFile(path, "utf8").catch(() => ""));
    if (!note || !isHostGone(note.host)) continue;
    const { root, folder } = note;
    try {
      const left = existsSync(folder) ? await undoLayer({ root, folder }) : [];
      if (left.length === 0) {
        await removeFolder(folder);
        sentences.push(
          `gyre was ended while it kept what a command did in ${root}: that was undone.`,
        );
      } else {
        const what = `gyre was ended while it kept what a command did in ${root}. Not all was undone; what was there is in ${folder}`;
        sentences.push(new ConflictError(what, left).message);
      }
      await rm(path, { force: true });
    } catch (error) {
      sentences.push(`What was cut off in ${root} could not be undone: ${errorMessage(error)}`);
    }
  }
  return sentences;
}

interface KeepingNote {
  root: string;
  folder: string;
  host: string;
}

function readNote(text: string): KeepingNote | undefined {
  try {
    const note: unknown = JSON.parse(text);
    const isNote =
      typeof note === "object" &&
      note !== null &&
      "root" in note &&
      "folder" in note &&
      "host" in note;
    if (!isNote) return undefined;
    const { root, folder, host } = note;
    const areTexts = [root, folder, host].every((value) => typeof value === "string");
    return areTexts ? (note as KeepingNote) : undefined;
  } catch {
    // Being written just now.
    return undefined;
  }
}

/** Makes, changes and deletes, and a folder that is made again. */
const PROBE = "echo new > made && echo more >> changed && rm -r folder && mkdir folder";
const PROBED = ["create made", "delete folder/file", "modify changed"];

/** Whether layers work here, by the whole chain. Else why not. */
async function tryOut(home: LayerHome, sandbox: Sandbox): Promise<string | undefined> {
  const folder = await mkdtemp(join(home.folder, "probe-"));
  try {
    const root = join(folder, "root");
    await mkdir(join(root, "folder"), { recursive: true });
    await writeFile(join(root, "changed"), "");
    await writeFile(join(root, "folder", "file"), "");
    const layer = await Layer.create({ ...home, root, folder });
    const program = { argv: ["/bin/sh", "-c", PROBE], cwd: root, env: { PATH: "/usr/bin:/bin" } };
    const policy = { writable: [root], readOnly: [], hidden: [], network: false };
    const failure = await start(sandbox.wrap(program, layer.cover(policy)));
    if (failure !== undefined) return failure;
    const effects = await layer.findEffects();
    const found = effects.map(({ kind, path }) => `${kind} ${path}`).toSorted();
    return found.join() === PROBED.join() ? undefined : `a trial shows ${found.join(", ")}.`;
  } catch (error) {
    return errorMessage(error);
  } finally {
    await removeFolder(folder);
  }
}

function start({ argv, cwd, env }: ProgramSpec): Promise<string | undefined> {
  const [file = "", ...args] = argv;
  return new Promise((done) => {
    execFile(file, args, { cwd, env, timeout: PROBE_TIMEOUT_MS }, (error, _stdout, stderr) =>
      done(error ? stderr.trim() || error.message : undefined),
    );
  });
}
