import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "@gyre/ai";

/** Of a note that `noteRun` made, named by the id of the run. */
const NOTE_NAME = /^running-([0-9a-f]{32})\.jsonl$/;

/**
 * Ends what hosts that are no more have left running, and gives the number of processes
 * that were ended. Looks for notes in `folder` and in the folders in it, so that each
 * agent may have one of its own. What a living host runs is not touched, nor are notes
 * of another container. The folders must be ours alone (0700): others are passed over,
 * because who writes a note says what is killed.
 */
export async function reapLeftovers(folder: string): Promise<number> {
  if (!(await isOursAlone(folder))) return 0;
  const entries = await readdir(folder, { withFileTypes: true });
  let ended = await reapFolder(folder);
  for (const entry of entries) {
    if (entry.isDirectory()) ended += await reapAgent(join(folder, entry.name)).catch(noneIfGone);
  }
  return ended;
}

async function reapAgent(folder: string): Promise<number> {
  return (await isOursAlone(folder)) ? reapFolder(folder) : 0;
}

async function reapFolder(folder: string): Promise<number> {
  let ended = 0;
  for (const name of await readdir(folder)) {
    const id = NOTE_NAME.exec(name)?.[1];
    if (id === undefined) continue;
    // Loaded here because there rarely is one.
    const { endNotedRun } = await import("./run-notes.ts");
    ended += await endNotedRun(join(folder, name), id).catch(noneIfGone);
  }
  return ended;
}

/** Another agent that ended meanwhile has cleared up after itself. */
function noneIfGone(error: unknown): number {
  if (errnoOf(error) === "ENOENT") return 0;
  throw error;
}

async function isOursAlone(folder: string): Promise<boolean> {
  const info = await lstat(folder);
  return info.isDirectory() && info.uid === process.getuid?.() && (info.mode & 0o022) === 0;
}
