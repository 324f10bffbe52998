import { lstat, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type FileChange, type FileState, type HistoryLine, isSameState } from "../lines/line.ts";
import { snapshotPath } from "../lines/snapshot.ts";
import { isMissing } from "../lines/store.ts";
import { computeState, type RewindWorld } from "./plan.ts";

/** What a file is called while it is being written. */
const TEMPORARY = /^\.gyre-[0-9a-f]{24}\.tmp$/;
/** A clock of a file system may be behind by as much. */
const CLOCK_SLACK_MS = 2_000;

/**
 * Writes down how far a rewind came that was ended in the middle, by the power say: the files are then known as they
 * are. It can be taken back as any other, and be finished: the rest is planned again. Gives its line; undefined where
 * no rewind was cut off.
 */
export async function settleRewind(world: RewindWorld): Promise<HistoryLine | undefined> {
  const { store, workspace } = world;
  const intent = store.lines.findLast(({ by }) => by === "intent" || by === "rewind");
  if (intent?.by !== "intent") return undefined;
  const changes: FileChange[] = [];
  for (const { path, before, after } of intent.changes) {
    const current = computeState(await snapshotPath(workspace, path));
    // A mode is set before and after a content; a link is removed before a file takes its place.
    const isBetween = current === null && before?.kind === "link";
    if (isBetween || isSameContent(current, after) || isSameContent(current, before)) {
      if (!isSameState(current, before)) changes.push({ path, before, after: current });
    }
    await removeTemporary(join(workspace.root, dirname(path)), intent.at);
  }
  const line: HistoryLine = { ...intent, by: "rewind", isCutOff: true, changes };
  await store.append(line);
  return line;
}

function isSameContent(one: FileState | null, other: FileState | null): boolean {
  return one?.hash === other?.hash && one?.kind === other?.kind;
}

/** Removes what was being written when it ended. */
async function removeTemporary(folder: string, since: number): Promise<void> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  for (const name of names) {
    if (!TEMPORARY.test(name)) continue;
    const path = join(folder, name);
    const { mtimeMs } = await lstat(path);
    if (mtimeMs > since - CLOCK_SLACK_MS) await rm(path, { force: true });
  }
}
