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

/** The workspace, as a walk needs it. */
export interface Ground {
  root: FolderSpot;
  /** Names of the paths that mean the workspace: the real one, and the one it was opened by. */
  rootNames: readonly (readonly string[])[];
  isProtected: Protection;
  /** Neither seen nor changed. */
  isHidden?: Protection;
  isWindows: boolean;
}

/** Where a path leads. `close` lets go of all but the root. */
export interface Walked {
  /** From the workspace, links followed; ends with the names that are not there. */
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
 * Throws where it leads out, even if it would come back.
 */
export function walk(ground: Ground, path: string, keepLink = false): Walked {
  const way = new Way(ground, path);
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
  /** The folders that are held, beneath the root. */
  readonly #folders: FolderSpot[] = [];
  readonly #names: string[] = [];
  /** What is still to be walked, the next one last. */
  readonly #ahead: string[] = [];
  #leaf: FileSpot | OtherSpot | undefined;
  #missing = 0;
  #links = 0;
  #isProtected = false;
  #saysFolder = false;

  constructor(ground: Ground, path: string) {
    this.#ground = ground;
    this.#path = path;
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
    if (this.#ground.isHidden?.(this.#names)) throw this.#hidden();
    return {
      names: this.#names,
      folder: this.#release(),
      leaf: this.#leaf,
      missing: this.#missing,
      isProtected: this.#isProtected || this.#ground.isProtected(this.#names),
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
    return this.#folders.at(-1) ?? this.#ground.root;
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
    const { rootNames, isWindows } = this.#ground;
    const parts = (isWindows ? path.replaceAll("\\", "/") : path).split("/");
    const isAbsolute = parts[0] === "" || (isWindows && /^[A-Za-z]:$/.test(parts[0] ?? ""));
    // An end with a slash says the same as one with a dot.
    const names = parts.filter(
      (part, index) => part !== "" && (part !== "." || index === parts.length - 1),
    );
    if (parts.at(-1) === "") names.push(".");
    if (isAbsolute) {
      const root = rootNames.find((root) => root.every((name, index) => name === names[index]));
      if (!root) throw this.#outside();
      names.splice(0, root.length);
      this.#toRoot();
    }
    for (const name of names.reverse()) this.#ahead.push(name);
  }

  #toRoot(): void {
    for (const folder of this.#folders.splice(0)) folder.close();
    this.#names.length = 0;
  }

  #up(): void {
    if (this.#missing > 0) {
      const there = this.#names.slice(0, this.#names.length - this.#missing + 1).join("/");
      throw this.#error("missing", `goes back up from "${there}", which is not there.`);
    }
    const folder = this.#folders.pop();
    if (!folder) throw this.#outside();
    folder.close();
    this.#names.pop();
  }

  #step(name: string, keepLink: boolean): void {
    if (Buffer.byteLength(name) > MAX_NAME_BYTES)
      throw this.#error("invalid", `has a name longer than ${MAX_NAME_BYTES} bytes in it.`);
    if (this.#names.length >= MAX_FOLDERS)
      throw this.#error("invalid", `is more than ${MAX_FOLDERS} folders deep.`);
    if (this.#ground.isWindows && !isPlainOnWindows(name))
      throw this.#error("invalid", `has "${name}" in it, which Windows takes for something else.`);
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
    this.#isProtected ||= this.#ground.isProtected([...this.#names, name]);
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
