import { homedir } from "node:os";
import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, relative, resolve } from "node:path";
import { errnoOf } from "@gyre/ai";
import { isWithin, realPlace, secretPlaces } from "../sandbox/places.ts";
import { hiding, protection } from "./protected.ts";
import { FolderWorkspace } from "./files.ts";
import { type FolderSpot } from "./folder.ts";
import { holdByDescriptor } from "./linux.ts";
import { holdByIdentity } from "./portable.ts";
import type { Base } from "./resolve.ts";
import { FolderError, type Workspace, type WorkspaceOptions } from "./types.ts";

export { MAX_READ_BYTES } from "./files.ts";
export * from "./types.ts";

const isWindows = process.platform === "win32";

/**
 * Opens the folder at `root`. A link there is followed now and not again: the workspace
 * is the folder that was opened, whatever its path leads to later. Its caller closes it.
 */
export async function openWorkspace(
  root: string,
  options: WorkspaceOptions = {},
): Promise<Workspace> {
  const real = await realpath(root);
  if (!(await stat(real)).isDirectory()) throw new Error(`${root} is not a folder to work in.`);
  const home = await realHome(options.home);
  const { readOnly = [], hidden = [], environment = process.env } = options;
  const homes = listHomes(home, environment);
  const secret = homes.flatMap((folder) => secretPlaces(folder, environment));
  const openBase = (folder: string, given: string, patterns: readonly string[]): Base => {
    const names = splitPath(folder);
    const isOwn = folder === real;
    const isHidden = hiding(findBeneath(names, isOwn ? hidden : [...hidden, ...secret]));
    return {
      root: hold(folder, options.hold),
      rootNames: [names, splitPath(given)],
      isProtected: protection(
        patterns,
        home === undefined ? undefined : beneath(names, splitPath(home)),
      ),
      ...((!isOwn || hidden.length > 0) && { isHidden }),
    };
  };
  const ground = { bases: [openBase(real, resolve(root), readOnly)] as const, isWindows };
  const workspace = new FolderWorkspace(real, ground, {
    folder(folder, given) {
      checkFolder(folder, given, { root: real, homes, hidden: [...hidden, ...secret] });
      return openBase(folder, given, []);
    },
    outside: (folder, only) => ({
      ...openBase(folder, folder, []),
      outside: only === undefined ? {} : { only },
    }),
    isSecret: (place) =>
      NO_FILES.some((folder) => isWithin(place, folder)) ||
      [...hidden, ...secret].some((each) => isWithin(place, realPlace(each))),
  });
  try {
    for (const folder of options.folders ?? []) workspace.addFolder(folder);
  } catch (error) {
    await workspace.close();
    throw error;
  }
  return workspace;
}

/** The user's home folder, and the one that programs are given. */
function listHomes(
  home: string | undefined,
  { HOME }: Readonly<Record<string, string | undefined>>,
): string[] {
  const named = HOME !== undefined && isAbsolute(HOME) ? [realPlace(HOME)] : [];
  return [...new Set([...(home === undefined ? [] : [home]), ...named])];
}

/** What the system shows of itself as files: of this process, too. */
const NO_FILES: readonly string[] = ["/proc", "/dev"];

/** Throws where a folder cannot be added to a workspace. */
function checkFolder(
  real: string,
  given: string,
  { root, homes, hidden }: { root: string; homes: readonly string[]; hidden: readonly string[] },
): void {
  const wrong = (why: string): Error => new FolderError(`${given} cannot be added: ${why}`);
  if (dirname(real) === real)
    throw wrong("it is all of this machine. Add the folder that is needed.");
  if (homes.some((home) => isWithin(home, real))) {
    throw wrong(
      "your home folder is in it, with all that is yours. Add the folder that is needed.",
    );
  }
  if (isWithin(root, real)) {
    throw wrong(`the workspace ${root} is in it. Start in ${real} to work in all of it.`);
  }
  if (hidden.some((place) => isWithin(real, realPlace(place)))) {
    throw wrong("keys, tokens and sessions are kept there.");
  }
  if (isAbsolute(relative(root, real))) {
    throw wrong(`it is on another drive than the workspace ${root}.`);
  }
}

/** The names that lead from a folder to those of the places that are beneath it. */
function findBeneath(names: readonly string[], places: readonly string[]): string[][] {
  return places.flatMap((place) => {
    const hiddenNames = splitPath(realPlace(place));
    // Of a folder inside of such a place, all is hidden.
    if (beneath(hiddenNames, names)) return [[]];
    const inside = beneath(names, hiddenNames);
    return inside ? [inside] : [];
  });
}

function hold(root: string, how: WorkspaceOptions["hold"]): FolderSpot {
  if (how === "identity" || (how === undefined && process.platform !== "linux"))
    return holdByIdentity(root);
  const folder = process.platform === "linux" ? holdByDescriptor(root) : undefined;
  if (folder) return folder;
  if (how === undefined) return holdByIdentity(root);
  throw new Error(
    `The workspace ${root} cannot be held by a descriptor: that needs Linux with /proc.`,
  );
}

async function realHome(home?: string): Promise<string | undefined> {
  try {
    return await realpath(home ?? homedir());
  } catch (error) {
    // A user without a home folder has nothing there to protect.
    if (["ENOENT", "EACCES", "ERR_SYSTEM_ERROR"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

function splitPath(absolute: string): string[] {
  return absolute.split(isWindows ? /[\\/]/ : "/").filter((name) => name !== "");
}

/** The names that lead from one place to another beneath it. */
function beneath(place: readonly string[], other: readonly string[]): string[] | undefined {
  return place.every((name, index) => name === other[index])
    ? other.slice(place.length)
    : undefined;
}
