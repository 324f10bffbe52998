import { setImmediate } from "node:timers/promises";
import { type BytePath, joinBytes, findParent } from "./byte-path.ts";
import { type Effect, isSameRecord, takeRecord, findType } from "./effect.ts";
import type { HeldFolders } from "./held-folders.ts";

const ENTRIES_A_TURN = 200;

/** Why an effect is not kept: someone else changed the same thing meanwhile. */
export interface Conflict {
  id: number;
  path: BytePath;
  /** As the end of a sentence that begins with the path. */
  why: string;
}

/**
 * What was changed in the workspace since the command began, where its effects are. `since`: the time of
 * change of something that was made just before it on the same file system, in nanoseconds. Errs on the
 * side of a conflict: a name that is new in a folder whose names changed meanwhile is one, because the
 * user may have deleted it.
 */
export async function findConflicts(
  root: HeldFolders,
  effects: readonly Effect[],
  since: bigint,
): Promise<Conflict[]> {
  const made = new Set(
    effects.flatMap((effect) =>
      effect.type === "folder" && (effect.kind === "create" || effect.kind === "replace")
        ? [effect.path]
        : [],
    ),
  );
  const conflicts: Conflict[] = [];
  for (const [index, effect] of effects.entries()) {
    if (index % ENTRIES_A_TURN === ENTRIES_A_TURN - 1) await setImmediate();
    const why = await findConflict(root, effect, since, made);
    if (why !== undefined) conflicts.push({ id: effect.id, path: effect.path, why });
  }
  return conflicts;
}

async function findConflict(
  root: HeldFolders,
  { path, before, below }: Effect,
  since: bigint,
  made: ReadonlySet<BytePath>,
): Promise<string | undefined> {
  const now = root.look(path);
  if (!before) {
    if (now) return "was made meanwhile";
    const folder = findParent(path);
    // Each folder that is new is an effect itself.
    if (made.has(folder)) return undefined;
    const around = root.look(folder);
    if (!around?.isDirectory()) return "is in a folder that is gone";
    return around.ctimeNs >= since ? "is in a folder whose names changed meanwhile" : undefined;
  }
  if (!now) return "was deleted meanwhile";
  if (findType(now) !== before.type) return "is something else now";
  if (now.ctimeNs >= since || !isSameRecord(takeRecord(now), before.record)) {
    return "was changed meanwhile";
  }
  if (below === undefined) return undefined;
  const found = await countBelow(root, path, since);
  if (found === "newer") return "has something in it that was changed meanwhile";
  return found === below ? undefined : "has something else in it now";
}

async function countBelow(
  root: HeldFolders,
  folder: BytePath,
  since: bigint,
): Promise<number | "newer"> {
  let count = 0;
  for (const name of root.list(folder)) {
    const path = joinBytes(folder, name);
    const stats = root.look(path);
    if (!stats) continue;
    if (stats.ctimeNs >= since) return "newer";
    count += 1;
    if (count % ENTRIES_A_TURN === 0) await setImmediate();
    if (!stats.isDirectory()) continue;
    const inside = await countBelow(root, path, since);
    if (inside === "newer") return inside;
    count += inside;
  }
  return count;
}
