import { chmod, mkdir, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import type { FileState } from "../lines/line.ts";
import type { HistoryStore } from "../lines/store.ts";

/** Has a file of a copy be what it was; null: not there. `folder` is a real path. Throws what the disk says. */
export async function putState(
  store: HistoryStore,
  folder: string,
  path: string,
  state: FileState | null,
): Promise<void> {
  const at = await clearPath(folder, path);
  if (!state) return;
  const bytes = await store.get(state.hash);
  if (state.kind === "link") return symlink(Buffer.from(bytes), at);
  await writeFile(at, bytes);
  await chmod(at, state.mode);
}

/** Removes what is at a path of a copy, and makes its folder. Gives where it is. */
export async function clearPath(folder: string, path: string): Promise<string> {
  const at = join(folder, path);
  await mkdir(dirname(at), { recursive: true });
  // A link on the way may lead out of the copy.
  const parent = await realpath(dirname(at));
  if (parent !== folder && !parent.startsWith(folder + sep)) {
    throw new Error("A link on the way leads elsewhere.");
  }
  await rm(at, { recursive: true, force: true });
  return at;
}
