import type { BigIntStats } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { type BytePath, fromBytes, joinBytes, getName, findParent } from "./byte-path.ts";
import { type Effect, takeRecord, RIGHTS, findType } from "./effect.ts";
import { HeldFolders } from "./held-folders.ts";
import { haveSameBytes } from "./same-bytes.ts";

/** After so many entries others get a turn. */
const ENTRIES_A_TURN = 200;

/** By folder of the layer, the names that a command saw in it, with their rights. */
type Merged = ReadonlyMap<BytePath, ReadonlyMap<BytePath, number>>;

/**
 * What a command did to the files of `root`, by what its layer holds: `listing` is from `listLayer`.
 * Deletions are the names that are below and not in the merged folder, which needs no extended attributes.
 */
export async function findEffects(root: string, upper: string, listing: Buffer): Promise<Effect[]> {
  const { folders, modes } = parseListing(listing);
  const lower = new HeldFolders(root);
  try {
    const layer = new HeldFolders(upper);
    try {
      return await new Search(lower, layer, folders, modes).run();
    } finally {
      layer.close();
    }
  } finally {
    lower.close();
  }
}

function parseListing(listing: Buffer): { folders: Merged; modes: ReadonlyMap<BytePath, number> } {
  const folders = new Map<BytePath, Map<BytePath, number>>();
  const modes = new Map<BytePath, number>();
  let ends = 0;
  for (const line of fromBytes(listing).split("\0")) {
    if (line === "") continue;
    const [, octal = "", place = ""] = /^\S ([0-7]+) ([^]*)$/.exec(line) ?? [];
    const path = place.replace(/^\.\/?/, "");
    const mode = Number.parseInt(octal, 8);
    modes.set(path, mode);
    if (path === "") {
      ends += 1;
      continue;
    }
    const folder = findParent(path);
    const names = folders.get(folder) ?? new Map<BytePath, number>();
    names.set(getName(path), mode);
    folders.set(folder, names);
  }
  if (ends < 2) throw new Error("What it changed cannot be listed: the list is not whole.");
  return { folders, modes };
}

class Search {
  readonly #effects: Effect[] = [];
  readonly #lower: HeldFolders;
  readonly #layer: HeldFolders;
  readonly #folders: Merged;
  readonly #modes: ReadonlyMap<BytePath, number>;
  #seen = 0;

  constructor(
    lower: HeldFolders,
    layer: HeldFolders,
    folders: Merged,
    modes: ReadonlyMap<BytePath, number>,
  ) {
    this.#lower = lower;
    this.#layer = layer;
    this.#folders = folders;
    this.#modes = modes;
  }

  async run(): Promise<Effect[]> {
    const top = this.#lower.look("");
    const mode = this.#modes.get("");
    if (top && mode !== undefined) this.#compareMode("", top, mode);
    await this.#folder("");
    return this.#effects;
  }

  /** A folder of the layer. */
  async #folder(path: BytePath): Promise<void> {
    const merged = this.#folders.get(path) ?? new Map<BytePath, number>();
    const stats = this.#lower.look(path);
    const below = stats?.isDirectory() ? this.#lower.list(path) : [];
    for (const name of below.toSorted()) {
      if (!merged.has(name)) await this.#deleted(joinBytes(path, name));
    }
    const own = new Set(this.#layer.list(path));
    for (const [name, mode] of [...merged].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      if (!own.has(name)) continue;
      if (++this.#seen % ENTRIES_A_TURN === 0) await setImmediate();
      await this.#entry(joinBytes(path, name), mode);
    }
  }

  async #entry(path: BytePath, mode: number): Promise<void> {
    const after = this.#layer.look(path);
    // A whiteout for a name that is not below any more.
    if (!after || isWhiteout(after)) return;
    const before = this.#lower.look(path);
    const type = findType(after);
    const facts = {
      path,
      type,
      mode,
      ...(type === "file" && { size: Number(after.size) }),
      ...(type === "link" && { target: this.#layer.readLink(path) }),
      ...(before && { before: describe(before) }),
    };
    if (type === "special") this.#add({ kind: "special", ...facts });
    else if (!before) this.#add({ kind: "create", ...facts });
    else if (findType(before) !== type) {
      const gone = before.isDirectory() ? { below: await this.#count(path) } : {};
      this.#add({ kind: "replace", ...facts, ...gone });
    } else if (type === "folder") this.#compareMode(path, before, mode);
    else if (this.#differs(path, before, after)) this.#add({ kind: "modify", ...facts });
    else if (type === "file") this.#compareMode(path, before, mode);
    if (type === "folder") await this.#folder(path);
  }

  async #deleted(path: BytePath): Promise<void> {
    const before = this.#lower.look(path);
    if (!before) return;
    const type = findType(before);
    const below = type === "folder" ? { below: await this.#count(path) } : {};
    this.#add({ kind: "delete", path, type, before: describe(before), ...below });
  }

  async #count(folder: BytePath): Promise<number> {
    let count = 0;
    for (const name of this.#lower.list(folder)) {
      const path = joinBytes(folder, name);
      if (++this.#seen % ENTRIES_A_TURN === 0) await setImmediate();
      count += 1 + (this.#lower.look(path)?.isDirectory() ? await this.#count(path) : 0);
    }
    return count;
  }

  #compareMode(path: BytePath, before: BigIntStats, mode: number): void {
    if ((Number(before.mode) & RIGHTS) === mode) return;
    this.#add({ kind: "mode", path, type: findType(before), mode, before: describe(before) });
  }

  #differs(path: BytePath, before: BigIntStats, after: BigIntStats): boolean {
    if (after.isSymbolicLink()) return this.#lower.readLink(path) !== this.#layer.readLink(path);
    if (before.size !== after.size) return true;
    return !haveSameBytes(this.#lower.way(path), this.#layer.way(path));
  }

  #add(effect: Omit<Effect, "id">): void {
    this.#effects.push({ id: this.#effects.length + 1, ...effect });
  }
}

/** A character device with the number 0/0: overlayfs's sign of a name that is gone. */
function isWhiteout(stats: BigIntStats): boolean {
  return stats.isCharacterDevice() && stats.rdev === 0n;
}

function describe(stats: BigIntStats): NonNullable<Effect["before"]> {
  return { type: findType(stats), record: takeRecord(stats), links: Number(stats.nlink) };
}
