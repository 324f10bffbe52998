import { randomBytes } from "node:crypto";
import { mkdir, rename, rm, rmdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Workspace } from "@gyre/tools";
import { type FileChange, type FileState, isSameState, type LeftOut } from "../lines/line.ts";
import { snapshotPath, describeFailure, type PathSnapshot } from "../lines/snapshot.ts";
import {
  LED_AWAY,
  type RewindPlan,
  type RewindStep,
  type RewindWorld,
  computeState,
} from "./plan.ts";

const OWNER_WRITES = 0o200;
const OWNER_READS_AND_WRITES = 0o600;
const TEMP_NAME_BYTES = 12;

export interface ApplyOptions {
  /** Files with conflicts are replaced too, but for those that are left alone always. */
  withConflicts: boolean;
  /** The newest entry of the session, and where the conversation ends: for a way back. */
  entry: number;
  leaf: number | null;
  /** Milliseconds since 1970. */
  at: number;
}

export interface RewindReport {
  done: readonly FileChange[];
  /** Left alone because of a conflict. */
  left: readonly LeftOut[];
  failed: readonly LeftOut[];
}

/**
 * Does what a plan says, file by file, past those that fail. What is replaced is kept first:
 * the rewind can be taken back. A file that has changed since it was planned is not touched. What
 * is about to be done is written down before: see `settleRewind`.
 */
export async function applyRewind(
  world: RewindWorld,
  plan: RewindPlan,
  options: ApplyOptions,
): Promise<RewindReport> {
  const done: FileChange[] = [];
  const left: LeftOut[] = [];
  const failed: LeftOut[] = [];
  const steps: RewindStep[] = [];
  for (const step of inOrder(plan.steps)) {
    const { path, conflict } = step;
    const isLeft = conflict && (conflict.isFinal || !options.withConflicts);
    if (isLeft) left.push({ path, why: conflict.why });
    else steps.push(step);
  }
  if (steps.length === 0) return { done, left, failed };
  const { entry, leaf, at } = options;
  const line = { entry, leaf, to: plan.to, at, leftOut: [] };
  await world.store.append({ ...line, by: "intent", changes: steps.map(toChange) });
  for (const step of steps) {
    try {
      await take(world, step);
      done.push(toChange(step));
    } catch (error) {
      failed.push({ path: step.path, why: describeFailure(error) });
    }
  }
  await world.store.append({ ...line, by: "rewind", changes: done });
  return { done, left, failed };
}

function toChange({ path, current, target }: RewindStep): FileChange {
  return { path, before: current, after: target };
}

/** What goes makes room for what comes: a link for a folder, a file for one. */
function inOrder(steps: readonly RewindStep[]): RewindStep[] {
  return [...steps].sort((a, b) => Number(a.target !== null) - Number(b.target !== null));
}

async function take({ store, workspace }: RewindWorld, step: RewindStep): Promise<void> {
  const { path, current, target } = step;
  const seen = await snapshotPath(workspace, path);
  if (seen.kind === "skipped" || !isSameState(computeState(seen), current)) {
    throw new Error("it has changed since the preview");
  }
  if (seen.kind === "elsewhere") throw new Error(LED_AWAY);
  if (seen.kind === "file" || seen.kind === "link") await store.put(seen.bytes);
  if (!target) return workspace.remove(`./${path}`);
  const bytes = await store.get(target.hash);
  // Only an empty one goes.
  if (seen.kind === "folder") await rmdir(join(workspace.root, path));
  if (target.kind === "link") return putLink(workspace, path, bytes);
  return putFile(workspace, path, target, bytes, seen);
}

async function putFile(
  workspace: Workspace,
  path: string,
  { mode }: FileState,
  bytes: Uint8Array,
  seen: PathSnapshot,
): Promise<void> {
  const name = `./${path}`;
  // A link would be followed.
  if (seen.kind === "link") await workspace.remove(name);
  if (seen.kind === "file" && (seen.mode & OWNER_WRITES) === 0) {
    await setMode(workspace, name, seen.mode | OWNER_WRITES);
  }
  await workspace.write(name, bytes, {
    mode: mode | OWNER_READS_AND_WRITES,
    expected: seen.kind === "file" ? seen.identity : null,
  });
  await setMode(workspace, name, mode);
}

async function setMode(workspace: Workspace, path: string, mode: number): Promise<void> {
  const { handle } = await workspace.open(path);
  try {
    await handle.chmod(mode);
  } finally {
    await handle.close();
  }
}

/** A link is made under another name and renamed: what was there is there until then. */
async function putLink(workspace: Workspace, path: string, target: Uint8Array): Promise<void> {
  const { absolute, path: resolved } = await workspace.resolve(`./${path}`, { keepLink: true });
  if (resolved !== path) throw new Error(LED_AWAY);
  const folder = dirname(absolute);
  await mkdir(folder, { recursive: true });
  const temporary = join(folder, `.gyre-${randomBytes(TEMP_NAME_BYTES).toString("hex")}.tmp`);
  try {
    await symlink(Buffer.from(target), temporary);
    await rename(temporary, absolute);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
