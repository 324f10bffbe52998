import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "@gyre/ai";

/** In the folder of an agent: the /tmp of its commands. */
export const TEMPORARY_NAME = "tmp";
/** In the state folder: the beginning of the name of a note on what is being kept of a layer. */
export const KEEPING = "keeping-";
/** In the folder of an agent: which process made it. */
export const HOST_NAME = "host.json";

/** Of a note that `noteRun` made, named by the id of the run. */
const NOTE_NAME = /^running-([0-9a-f]{32})\.jsonl$/;

/**
 * Ends what hosts that are no more have left running, and gives the number of processes
 * that were ended; removes what their commands had in /tmp. Looks for notes in `folder` and in the folders in it, so that each
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
  if (!(await isOursAlone(folder))) return 0;
  const ended = await reapFolder(folder);
  await sweepTemporary(folder);
  return ended;
}

/** The /tmp of an agent whose host is no more. */
async function sweepTemporary(folder: string): Promise<void> {
  const names = await readdir(folder);
  if (!names.includes(TEMPORARY_NAME) || !names.includes(HOST_NAME)) return;
  const { isHostGone } = await import("@gyre/ai/programs");
  if (!isHostGone(await readFile(join(folder, HOST_NAME), "utf8"))) return;
  const { removeFolder } = await import("./remove-folder.ts");
  await removeFolder(join(folder, TEMPORARY_NAME));
}

async function reapFolder(folder: string): Promise<number> {
  let ended = 0;
  for (const name of await readdir(folder)) {
    const id = NOTE_NAME.exec(name)?.[1];
    if (id === undefined) continue;
    // Loaded here because there rarely is one.
    const { endNotedRun } = await import("@gyre/ai/programs");
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
