import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { SYSTEM_PATH } from "../sandbox/sandbox.ts";

/** What a layer is mounted and read with. Each is a path. */
export interface LayerPrograms {
  unshare: string;
  mount: string;
  find: string;
  xargs: string;
  chmod: string;
}

const NAMES = ["unshare", "mount", "find", "xargs", "chmod"] as const;

/** To read what a command left; a layer with tens of thousands of files takes seconds. */
const LIST_TIMEOUT_MS = 300_000;
const MAX_LISTING_BYTES = 1024 * 1024 * 1024;

/** Exit code of the scripts where a mount fails. A file says whether it was that. */
const MOUNT_FAILED = 97;
/** In the folder of a layer: made when the layer is mounted. */
export const MOUNTED = "mounted";

/**
 * Mounts the layer over the workspace and becomes the program. Folders of the layer are named relative
 * to it: overlayfs reads commas and colons as its own. The workspace is mounted in the layer first, for
 * the same reason. $1: the workspace, $2: the layer, $3: mount.
 */
const RUN = `cd "$2" && "$3" --bind "$1" low &&
"$3" -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work,userxattr,volatile "$1" &&
: > ${MOUNTED} || exit ${MOUNT_FAILED}
cd / && shift 3 && exec "$@"`;

/**
 * Writes type, mode and path of all that is in the folders that a layer has, as a command in it saw them,
 * and then lets the owner of the layer read all of it. The workspace itself is listed twice where all folders were
 * found: nothing else would say that the first part of the pipe failed. $4: find, $5: xargs, $6: chmod.
 */
const LIST = `cd "$2" && "$3" --bind "$1" low &&
"$3" -t overlay overlay -o ro,lowerdir=up:low,userxattr "$1" || exit ${MOUNT_FAILED}
( cd up && "$4" . -type d -print0 && printf '.\\0' ) | ( cd "$1" &&
"$5" -0 -r /bin/sh -c 'find=$1; shift; exec "$find" "$@" -maxdepth 1 -printf "%y %m %p\\0"' sh "$4" ) || exit 1
"$6" -R u+rwX "$2/up"`;

/** The programs of this system; or which of them is missing. */
export function findLayerPrograms(path: string = SYSTEM_PATH): LayerPrograms | { missing: string } {
  const folders = `${path}:/usr/sbin:/sbin`.split(":");
  const found: Partial<Record<(typeof NAMES)[number], string>> = {};
  for (const name of NAMES) {
    const at = folders.map((folder) => join(folder, name)).find((place) => existsSync(place));
    if (at === undefined) return { missing: name };
    found[name] = at;
  }
  const { unshare = "", mount = "", find = "", xargs = "", chmod = "" } = found;
  return { unshare, mount, find, xargs, chmod };
}

/** Namespaces of our own, in which this process may mount. */
const NAMESPACES = ["-Urm", "--propagation", "private"];

/** What starts a program with a layer over the folder `root`: it is followed by the command line of the program. */
export function listStarter(
  { unshare, mount }: LayerPrograms,
  root: string,
  layer: string,
): string[] {
  return [unshare, ...NAMESPACES, "/bin/sh", "-c", RUN, "sh", root, layer, mount];
}

/** What the folders of a layer hold, merged with what is below: type, mode and path of each entry. */
export function listLayer(programs: LayerPrograms, root: string, layer: string): Promise<Buffer> {
  const { unshare, mount, find, xargs, chmod } = programs;
  const args = [...NAMESPACES, "/bin/sh", "-c", LIST, "sh", root, layer, mount, find, xargs, chmod];
  return new Promise((done, fail) => {
    execFile(
      unshare,
      args,
      {
        cwd: "/",
        env: {},
        encoding: "buffer",
        timeout: LIST_TIMEOUT_MS,
        maxBuffer: MAX_LISTING_BYTES,
      },
      (error, stdout, stderr) => {
        if (!error) done(stdout);
        else {
          const why = stderr.toString("utf8").trim() || error.message;
          fail(new Error(`What it changed cannot be listed: ${why}`, { cause: error }));
        }
      },
    );
  });
}
