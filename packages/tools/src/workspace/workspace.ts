import { homedir } from "node:os";
import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { errnoOf } from "@gyre/ai";
import { realPlace } from "../sandbox/places.ts";
import { hiding } from "./hidden.ts";
import { protection } from "./protected.ts";
import { FolderWorkspace } from "./files.ts";
import { type FolderSpot } from "./folder.ts";
import { holdByDescriptor } from "./linux.ts";
import { holdByIdentity } from "./portable.ts";
import type { Workspace, WorkspaceOptions } from "./types.ts";

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
  const names = splitPath(real);
  const home = await realHome(options.home);
  const isProtected = protection(
    options.readOnly ?? [],
    home === undefined ? undefined : beneath(names, splitPath(home)),
  );
  const hidden = (options.hidden ?? []).flatMap((place) => {
    const hiddenNames = splitPath(realPlace(place));
    // Of a workspace inside of such a place, all is hidden.
    if (beneath(hiddenNames, names)) return [[]];
    const inside = beneath(names, hiddenNames);
    return inside ? [inside] : [];
  });
  return new FolderWorkspace(real, {
    root: hold(real, options.hold),
    rootNames: [names, splitPath(resolve(root))],
    isProtected,
    ...(hidden.length > 0 && { isHidden: hiding(hidden) }),
    isWindows,
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
