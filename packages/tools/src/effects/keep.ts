import {
  chmodSync,
  copyFileSync,
  constants,
  linkSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { errnoOf } from "@gyre/ai";
import { randomBytes } from "node:crypto";
import { type BytePath, joinBytes, findParent, readable, toBytes } from "./byte-path.ts";
import { type Conflict, findConflicts } from "./conflicts.ts";
import {
  type Effect,
  type FileRecord,
  isSameRecord,
  KEPT_RIGHTS,
  takeRecord,
  RIGHTS,
  findType,
} from "./effect.ts";
import { HeldFolders } from "./held-folders.ts";
import {
  beginUndo,
  endUndo,
  JournalWriter,
  type NewFile,
  readJournal,
  type Step,
} from "./journal.ts";
import { haveSameBytes } from "./same-bytes.ts";
import { findUsers } from "./open-files.ts";

/** Steps that are written down together before the first of them is taken. */
const BATCH = 256;
const OWNER = 0o700;
/** Its owner may look at what is in a folder. */
const USES = 0o100;
/** In the folder of a layer: what was there before it was kept. */
export const BACKUP = "backup";
/** In the folder of a layer: what the command made. */
export const UPPER = "up";
const MAX_NAMED = 5;

/** Others changed what is to be kept or undone, or have it open: nothing was done. */
export class ConflictError extends Error {
  readonly code = "conflict";
  readonly conflicts: readonly Conflict[];
  constructor(what: string, conflicts: readonly Conflict[]) {
    const named = conflicts
      .slice(0, MAX_NAMED)
      .map(({ path, why }) => `"${readable(path) || "."}" ${why}`);
    const more = conflicts.length - named.length;
    super(`${what}: ${named.join("; ")}${more > 0 ? `; and ${more} more` : ""}.`);
    this.name = "ConflictError";
    this.conflicts = conflicts;
  }
}

/** A layer whose command has ended. */
export interface EndedLayer {
  /** The workspace. */
  root: string;
  /** The folder of the layer. */
  folder: string;
  /** See `findConflicts`. */
  since: bigint;
}

/**
 * Does what a command did in its layer to the workspace itself: all of it or nothing. Throws
 * `ConflictError` where others changed the same things meanwhile, or have them open to write. Readers may see a
 * part of it while it is done. A process that is killed meanwhile leaves a journal, by which
 * `undoLayer` brings back what was.
 */
export async function keepLayer(
  { root, folder, since }: EndedLayer,
  effects: readonly Effect[],
): Promise<void> {
  const kept = effects.filter(({ kind }) => kind !== "special");
  const held = new HeldFolders(root);
  try {
    const conflicts = await findConflicts(held, kept, since);
    const users = findUsers(root, kept).filter(({ writes }) => writes);
    for (const { id, path, name, pid } of users) {
      conflicts.push({ id, path, why: `is open in ${name} (${pid})` });
    }
    if (conflicts.length > 0) throw new ConflictError("Nothing was kept", conflicts);
    mkdirSync(join(folder, BACKUP), { mode: OWNER });
    const journal = new JournalWriter(folder);
    try {
      const steps = planSteps(kept);
      const known = new Map(kept.flatMap(({ path, before }) => (before ? [[path, before]] : [])));
      const made = new Map<BytePath, FileRecord>();
      for (let start = 0; start < steps.length; start += BATCH) {
        const batch = steps.slice(start, start + BATCH);
        journal.plan(batch);
        for (const step of batch) {
          checkUnchanged(held, step, known.get(step.path)?.record);
          takeStep(held, folder, step);
          // Now: a later step may close the folder.
          const stats = step.do === "remove" ? undefined : held.look(step.path);
          if (stats) made.set(step.path, takeRecord(stats));
        }
        await setImmediate();
      }
      journal.end(made);
    } finally {
      journal.close();
    }
  } catch (error) {
    await undoLayer({ root, folder });
    throw error;
  } finally {
    held.close();
  }
}

/** In an order in which each step finds what it needs; rights of folders last, which may close them. */
function planSteps(effects: readonly Effect[]): Step[] {
  const removals: Step[] = [];
  const folders: Step[] = [];
  const files: Step[] = [];
  const modes: Step[] = [];
  for (const [
    index,
    { path, kind, type, mode = 0, size = 0, before, target },
  ] of effects.entries()) {
    const backup = String(index);
    const rights = mode & KEPT_RIGHTS;
    const temporary = joinBytes(findParent(path), `.gyre-${randomBytes(8).toString("hex")}`);
    const made = {
      path,
      temporary,
      mode: rights,
      size,
      ...(target !== undefined && { link: target }),
    };
    if (kind === "delete" || kind === "replace") removals.push({ do: "remove", path, backup });
    if (kind === "mode") {
      modes.push({ do: "mode", path, was: before?.record.mode ?? rights, mode: rights });
    } else if (kind === "modify") files.push({ do: "modify", ...made, backup });
    else if (kind !== "delete" && type !== "folder") files.push({ do: "create", ...made });
    else if (kind !== "delete") {
      folders.push({ do: "folder", path });
      modes.push({ do: "mode", path, was: OWNER, mode: rights });
    }
  }
  // A folder before what is in it, and its rights after that.
  const byPath = (one: Step, other: Step): number => (one.path < other.path ? -1 : 1);
  return [
    ...removals,
    ...folders.toSorted(byPath),
    ...files,
    ...modes.toSorted(byPath).toReversed(),
  ];
}

/** Once more, just before: between the look at all of it and this step there is time. */
function checkUnchanged(held: HeldFolders, step: Step, record: FileRecord | undefined): void {
  if (step.do !== "remove" && step.do !== "modify") return;
  const now = held.look(step.path);
  if (now && record && isSameRecord(takeRecord(now), record)) return;
  const conflict = { id: 0, path: step.path, why: "was changed meanwhile" };
  throw new ConflictError("Nothing was kept", [conflict]);
}

function takeStep(held: HeldFolders, folder: string, step: Step): void {
  const { path } = step;
  const backup = (name: string): string => join(folder, BACKUP, name);
  switch (step.do) {
    case "remove":
      held.forget(path);
      return renameSync(held.way(path), backup(step.backup));
    case "folder":
      mkdirSync(held.way(path), { mode: OWNER });
      return undefined;
    case "create":
      makeTemporary(held, folder, step);
      // A link fails where something is there by now; a rename would replace it.
      linkSync(held.way(step.temporary), held.way(path));
      return unlinkSync(held.way(step.temporary));
    case "modify":
      linkSync(held.way(path), backup(step.backup));
      makeTemporary(held, folder, step);
      return renameSync(held.way(step.temporary), held.way(path));
    case "mode":
      return chmodSync(held.way(path), step.mode);
  }
}

/** Copied, because what overlayfs noted on the file is not to come along. */
function makeTemporary(
  held: HeldFolders,
  folder: string,
  { path, temporary, link, mode }: NewFile,
): void {
  const at = held.way(temporary);
  if (link !== undefined) return symlinkSync(toBytes(link), at);
  copyFileSync(findInLayer(folder, path), at, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  return chmodSync(at, mode);
}

function findInLayer(folder: string, path: BytePath): Buffer {
  return Buffer.concat([Buffer.from(join(folder, UPPER, "/")), toBytes(path)]);
}

/**
 * Takes back what `keepLayer` did, also where that was cut off, or this itself. Throws `ConflictError`, and
 * changes nothing, where what was kept has been changed since. Where keeping was cut off and others
 * went on with a file, that file stays as it is: gives these.
 */
export async function undoLayer({
  root,
  folder,
}: Pick<EndedLayer, "root" | "folder">): Promise<Conflict[]> {
  const { state, steps = [], made } = readJournal(folder) ?? {};
  if (state === undefined || state === "undone") return [];
  const held = new HeldFolders(root);
  const left: Conflict[] = [];
  try {
    if (made) checkKept(held, steps, made);
    beginUndo(folder);
    for (const [index, step] of steps.toReversed().entries()) {
      if (!undoStep(held, folder, step)) {
        left.push({ id: 0, path: step.path, why: "was changed by another program" });
      }
      if (index % BATCH === BATCH - 1) await setImmediate();
    }
    // What could not be brought back stays in the backup.
    if (left.length === 0) endUndo(folder);
  } finally {
    held.close();
  }
  return left;
}

function checkKept(
  held: HeldFolders,
  steps: readonly Step[],
  made: ReadonlyMap<BytePath, FileRecord>,
): void {
  const conflicts: Conflict[] = [];
  const seen = new Set<BytePath>();
  // What is in a folder that the command closed cannot be looked at before it is open again.
  const closed = steps.flatMap((step) =>
    step.do === "mode" && (step.mode & USES) !== USES ? [`${step.path}/`] : [],
  );
  for (const { path } of steps) {
    if (seen.has(path) || closed.some((folder) => path.startsWith(folder))) continue;
    seen.add(path);
    const now = held.look(path);
    const then = made.get(path);
    if (then === undefined) {
      if (now) conflicts.push({ id: 0, path, why: "was made again since" });
    } else if (!now) conflicts.push({ id: 0, path, why: "was deleted since" });
    // The times of a folder are those of the names in it.
    else if (
      findType(now) === "folder"
        ? String(now.ino) !== then.ino
        : !isSameRecord(takeRecord(now), then)
    ) {
      conflicts.push({ id: 0, path, why: "was changed since" });
    }
  }
  if (conflicts.length > 0) throw new ConflictError("Nothing was undone", conflicts);
}

/**
 * Takes a step back; nothing where it was never taken, or is taken back already. False where others
 * changed what it made: that stays.
 */
function undoStep(held: HeldFolders, folder: string, step: Step): boolean {
  const { path } = step;
  switch (step.do) {
    case "remove":
      held.forget(path);
      return restore(held, path, join(folder, BACKUP, step.backup), () => false);
    case "folder":
      held.forget(path);
      // What others put there stays.
      unless("ENOENT ENOTEMPTY ENOTDIR", () => rmdirSync(held.way(path)));
      return true;
    case "create": {
      const temporary = held.look(step.temporary);
      const now = held.look(path);
      if (temporary) unlinkSync(held.way(step.temporary));
      // As long as the temporary name is there, only a second name of the same file is ours.
      if (!now || (temporary && temporary.ino !== now.ino)) return true;
      if (!temporary && !isMade(held, folder, step)) return false;
      unlinkSync(held.way(path));
      return true;
    }
    case "modify":
      if (held.look(step.temporary)) unlinkSync(held.way(step.temporary));
      return restore(held, path, join(folder, BACKUP, step.backup), () =>
        isMade(held, folder, step),
      );
    case "mode": {
      const now = held.look(path);
      if (now && (Number(now.mode) & RIGHTS) === step.mode) chmodSync(held.way(path), step.was);
      return true;
    }
  }
}

/** Puts a backup back, if there is one, unless something is there that is not ours. */
function restore(
  held: HeldFolders,
  path: BytePath,
  backup: string,
  isOurs: () => boolean,
): boolean {
  const old = lstatSync(backup, { bigint: true, throwIfNoEntry: false });
  if (!old) return true;
  const now = held.look(path);
  if (now && now.ino !== old.ino && !isOurs()) return false;
  // Of two names of one file, a rename leaves both.
  renameSync(backup, held.way(path));
  return true;
}

/** Whether what is at the path is what a step has made of the layer. */
function isMade(held: HeldFolders, folder: string, { path, link, size }: NewFile): boolean {
  const now = held.look(path);
  if (link !== undefined) return now?.isSymbolicLink() === true && held.readLink(path) === link;
  if (!now?.isFile() || Number(now.size) !== size) return false;
  try {
    return haveSameBytes(held.way(path), findInLayer(folder, path));
  } catch (error) {
    // Closed by the command itself; the size is the same.
    if (errnoOf(error) === "EACCES") return true;
    throw error;
  }
}

function unless(codes: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!codes.split(" ").includes(errnoOf(error) ?? "")) throw error;
  }
}
