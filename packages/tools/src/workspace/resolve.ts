import type { FileSpot, FolderSpot, OtherSpot } from "./folder.ts";
import type { Protection } from "./protected.ts";
import { PathError, type PathFault } from "./types.ts";

/** As Linux has it. */
export const MAX_LINKS = 40;
/** As Linux has it, without the byte that ends it. */
export const MAX_PATH_BYTES = 4095;
export const MAX_NAME_BYTES = 255;
/** Each folder on the way is held while a path is walked. */
export const MAX_FOLDERS = 256;
/** How often a name that changes under our hands is looked at again. */
const MAX_LOOKS = 8;

/** An opened folder that walks may begin at or come to: the workspace, one that was added, or a place outside. */
export interface Base {
  root: FolderSpot;
  /** Names of the paths that mean it: the real one first, then the one it was opened by. */
  rootNames: readonly [readonly string[], ...(readonly string[])[]];
  isProtected: Protection;
  /** Neither seen nor changed. */
  isHidden?: Protection;
  /** Outside of the workspace: only what reads comes here. With a name, to this entry alone. */
  outside?: { only?: string };
}

/** The workspace, as a walk needs it. */
export interface Ground {
  /** The workspace itself is the first. */
  bases: readonly [Base, ...Base[]];
  isWindows: boolean;
}

export interface WalkOptions {
  /** See `ResolveOptions`. */
  keepLink?: boolean;
  /** Whether the walk may come to places outside that were allowed to be read. */
  reads?: boolean;
}

/** Where a path leads. `close` lets go of all but the root. */
export interface Walked {
  /** From the root of the system, links followed; ends with the names that are not there. */
  absolute: string[];
  /** From its base, in the same way. */
  names: string[];
  /** The last folder on the way that is there. */
  folder: FolderSpot;
  /** What is at the end, if it is no folder. Its name is the last of `names`. */
  leaf: FileSpot | OtherSpot | undefined;
  /** How many of the names are not there. */
  missing: number;
  /** The way goes through a protected place, or ends at one. */
  isProtected: boolean;
  /** Written so that it can only be a folder. */
  saysFolder: boolean;
  close(): void;
}

/**
 * Follows a path from the opened workspace, one name after the other, links by hand.
 * Throws where it leads out, even if it would come back; from one base to another it may lead.
 */
export function walk(ground: Ground, path: string, options: WalkOptions = {}): Walked {
  const { keepLink = false, reads = false } = options;
  const way = new Way(ground, path, reads);
  try {
    return way.follow(keepLink);
  } catch (error) {
    way.close();
    throw error;
  }
}

class Way {
  readonly #ground: Ground;
  readonly #path: string;
  readonly #bases: readonly Base[];
  #base: Base;
  /** The folders that are held, beneath the root of the base. */
  readonly #folders: FolderSpot[] = [];
  readonly #names: string[] = [];
  /** What is still to be walked, the next one last. */
  readonly #ahead: string[] = [];
  #leaf: FileSpot | OtherSpot | undefined;
  #missing = 0;
  #links = 0;
  #isProtected = false;
  #saysFolder = false;

  constructor(ground: Ground, path: string, reads: boolean) {
    this.#ground = ground;
    this.#path = path;
    this.#bases = reads ? ground.bases : ground.bases.filter(({ outside }) => !outside);
    this.#base = ground.bases[0];
  }

  follow(keepLink: boolean): Walked {
    this.#take(this.#checked());
    for (let name = this.#ahead.pop(); name !== undefined; name = this.#ahead.pop()) {
      if (this.#leaf) throw this.#notAFolder();
      this.#saysFolder = name === ".";
      if (name === ".") continue;
      if (name === "..") this.#up();
      else this.#step(name, keepLink);
    }
    this.#folder.verify();
    const { outside, rootNames } = this.#base;
    if (outside?.only !== undefined && this.#names.length === 0) throw this.#outside();
    const absolute = [...rootNames[0], ...this.#names];
    if (isHiddenAt(this.#ground, absolute)) throw this.#hidden();
    return {
      absolute,
      names: this.#names,
      folder: this.#release(),
      leaf: this.#leaf,
      missing: this.#missing,
      isProtected:
        this.#isProtected || outside !== undefined || this.#base.isProtected(this.#names),
      saysFolder: this.#saysFolder,
      close: () => this.close(),
    };
  }

  close(): void {
    this.#leaf?.close();
    this.#leaf = undefined;
    for (const folder of this.#folders.splice(0)) folder.close();
  }

  get #folder(): FolderSpot {
    return this.#folders.at(-1) ?? this.#base.root;
  }

  /** Lets go of all folders but the last. */
  #release(): FolderSpot {
    for (const folder of this.#folders.splice(0, this.#folders.length - 1)) folder.close();
    return this.#folder;
  }

  /** The path as it was given, if it can be one. */
  #checked(): string {
    const path = this.#path;
    if (path === "") throw this.#error("invalid", `is no path. "." is the workspace.`);
    if (path.includes("\0")) throw this.#error("invalid", `has a NUL character in it.`);
    if (Buffer.byteLength(path) > MAX_PATH_BYTES)
      throw this.#error("invalid", `is longer than ${MAX_PATH_BYTES} bytes.`);
    if (Buffer.from(path).toString() !== path)
      throw this.#error("invalid", `has half of a surrogate pair in it.`);
    if (path === "~" || path.startsWith("~/"))
      throw this.#error(
        "outside",
        `would be in the home folder. Paths are relative to the workspace; "./~" is a name in it.`,
      );
    return path;
  }

  /** Puts a path, given or from a link, before what is still to be walked. */
  #take(path: string): void {
    const { isWindows } = this.#ground;
    const parts = (isWindows ? path.replaceAll("\\", "/") : path).split("/");
    const isAbsolute = parts[0] === "" || (isWindows && /^[A-Za-z]:$/.test(parts[0] ?? ""));
    // An end with a slash says the same as one with a dot.
    const names = parts.filter(
      (part, index) => part !== "" && (part !== "." || index === parts.length - 1),
    );
    if (parts.at(-1) === "") names.push(".");
    if (isAbsolute) names.splice(0, this.#enter(names));
    for (const name of names.reverse()) this.#ahead.push(name);
  }

  /** Goes to the innermost base around a place. Gives how many of its names lead to the base. */
  #enter(names: readonly string[], bases = this.#bases): number {
    let found: { base: Base; length: number } | undefined;
    for (const base of bases) {
      for (const root of base.rootNames) {
        if (root.length < (found?.length ?? 0)) continue;
        if (found?.length === root.length && !found.base.outside) continue;
        if (root.every((name, index) => name === names[index])) {
          found = { base, length: root.length };
        }
      }
    }
    if (!found) throw this.#outside();
    for (const folder of this.#folders.splice(0)) folder.close();
    this.#names.length = 0;
    this.#base = found.base;
    return found.length;
  }

  #up(): void {
    if (this.#missing > 0) {
      const there = this.#names.slice(0, this.#names.length - this.#missing + 1).join("/");
      throw this.#error("missing", `goes back up from "${there}", which is not there.`);
    }
    const folder = this.#folders.pop();
    if (!folder) return this.#leave();
    folder.close();
    this.#names.pop();
  }

  /** Goes up from the root of a base: what is ahead may lead to another one. */
  #leave(): void {
    const names = this.#base.rootNames[0].slice(0, -1);
    const ahead = this.#ahead.splice(0).reverse();
    while (names.length > 0 && (ahead[0] === ".." || ahead[0] === ".")) {
      if (ahead.shift() === "..") names.pop();
    }
    const all = [...names, ...ahead];
    const others = this.#bases.filter((base) => base !== this.#base);
    this.#ahead.push(...all.slice(this.#enter(all, others)).reverse());
  }

  #step(name: string, keepLink: boolean): void {
    if (Buffer.byteLength(name) > MAX_NAME_BYTES)
      throw this.#error("invalid", `has a name longer than ${MAX_NAME_BYTES} bytes in it.`);
    if (this.#names.length >= MAX_FOLDERS)
      throw this.#error("invalid", `is more than ${MAX_FOLDERS} folders deep.`);
    if (this.#ground.isWindows && !isPlainOnWindows(name))
      throw this.#error("invalid", `has "${name}" in it, which Windows takes for something else.`);
    const { only } = this.#base.outside ?? {};
    if (only !== undefined && this.#names.length === 0 && name !== only) throw this.#outside();
    if (this.#missing > 0) {
      this.#names.push(name);
      this.#missing += 1;
      return;
    }
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      const spot = this.#folder.look(name);
      if (spot?.kind === "link" && !(keepLink && this.#ahead.length === 0)) {
        spot.close();
        if (this.#through(name)) return;
        continue;
      }
      this.#names.push(name);
      if (!spot) this.#missing = 1;
      else if (spot.kind === "folder") this.#folders.push(spot);
      else this.#leaf = spot;
      return;
    }
    throw this.#error("changed", `keeps changing. Try again.`);
  }

  /** Follows the link of a name; false where it is no link any more. */
  #through(name: string): boolean {
    const bytes = this.#folder.readLink(name);
    if (!bytes) return false;
    this.#links += 1;
    if (this.#links > MAX_LINKS)
      throw this.#error("invalid", `leads through more than ${MAX_LINKS} links.`);
    const target = bytes.toString();
    if (!Buffer.from(target).equals(bytes))
      throw this.#error("invalid", `leads through a link whose target is not UTF-8.`);
    // What is reached by way of a protected link is protected wherever it is.
    this.#isProtected ||= this.#base.isProtected([...this.#names, name]);
    this.#take(target);
    return true;
  }

  #hidden(): PathError {
    return this.#error("denied", `is not for tools: keys, tokens and sessions are kept there.`);
  }

  #outside(): PathError {
    return this.#error(
      "outside",
      `leads out of the workspace. Only what is inside of it can be used here.`,
    );
  }

  #notAFolder(): PathError {
    return this.#error(
      "not_a_folder",
      `goes through "${this.#names.join("/")}", which is not a folder.`,
    );
  }

  #error(fault: PathFault, what: string): PathError {
    return new PathError(fault, this.#path, `${shown(this.#path)} ${what}`);
  }
}

/** Whether tools may neither see nor change a place, by the names that lead to it from the root of the system. */
export function isHiddenAt({ bases }: Ground, absolute: readonly string[]): boolean {
  return bases.some(
    ({ isHidden, rootNames: [root] }) =>
      isHidden !== undefined &&
      root.every((name, index) => name === absolute[index]) &&
      isHidden(absolute.slice(root.length)),
  );
}

/** Longer ones are cut where they are shown. */
const MAX_SHOWN_CHARS = 300;

/** A path for a message: quoted, control characters escaped, not endless. */
export function shown(path: string): string {
  return JSON.stringify(
    path.length > MAX_SHOWN_CHARS ? `${path.slice(0, MAX_SHOWN_CHARS)}…` : path,
  );
}

/** No stream (`a:b`), no device (`nul.txt`), no end that is dropped (`a.`). */
export function isPlainOnWindows(name: string): boolean {
  return (
    !/[:*?"<>|]|[. ]$/.test(name) &&
    !/^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(?:\.|$)/i.test(name)
  );
}
