import { readFileSync } from "node:fs";
import { type BytePath, fromBytes, fromText } from "./byte-path.ts";

/** A mount of this process. */
export interface Mount {
  id: string;
  at: BytePath;
  type: string;
}

const OCTAL = 8;

/** What is mounted, the last on top of the others. */
export function listMounts(table = "/proc/self/mountinfo"): Mount[] {
  return fromBytes(readFileSync(table))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [mount = "", source = ""] = line.split(" - ");
      const [id = "", , , , at = ""] = mount.split(" ");
      const [type = ""] = source.split(" ");
      const plain = at.replaceAll(/\\([0-7]{3})/g, (_, digits: string) =>
        String.fromCharCode(Number.parseInt(digits, OCTAL)),
      );
      return { id, at: plain, type };
    });
}

/** The mount that a place is on. */
export function findMount(mounts: readonly Mount[], path: string): Mount | undefined {
  const place = fromText(path);
  let found: Mount | undefined;
  for (const mount of mounts) {
    const isAround =
      place === mount.at || place.startsWith(mount.at === "/" ? "/" : `${mount.at}/`);
    if (isAround && (!found || mount.at.length >= found.at.length)) found = mount;
  }
  return found;
}

/** A mount inside of a folder. */
export function findMountBelow(mounts: readonly Mount[], path: string): Mount | undefined {
  const prefix = `${fromText(path)}/`;
  return mounts.find(({ at }) => at.startsWith(prefix));
}
