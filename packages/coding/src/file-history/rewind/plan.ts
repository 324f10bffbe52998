import { alignLines, type Workspace } from "@gyre/tools";
import {
  type FilePlace,
  type FileState,
  type HistoryLine,
  isSameState,
  type LeftOut,
} from "../lines/line.ts";
import { snapshotPath, type PathSnapshot } from "../lines/snapshot.ts";
import { computeHash, type HistoryStore } from "../lines/store.ts";
import { findDoubt } from "./doubt.ts";
import {
  FileTree,
  type LeftFile,
  type PlacedSession,
  type TracedChange,
  type TreePlace,
} from "./file-tree.ts";

export const LED_AWAY = "a link on the way leads elsewhere";

export interface Conflict {
  /** For people, as a part of a sentence: "it was changed since". */
  why: string;
  /** It is left alone even if the user wants it replaced. */
  isFinal: boolean;
}

/** What would be done to one file. */
export interface RewindStep {
  path: string;
  action: "restore" | "remove" | "recreate";
  /** Lines that it gets and loses; absent where it is no text. */
  lines?: { added: number; removed: number };
  /** It is left alone, unless that is confirmed. */
  conflict?: Conflict;
  /** What is there now. */
  current: FileState | null;
  /** What is to be there. */
  target: FileState | null;
}

export interface RewindPlan {
  to: FilePlace;
  steps: readonly RewindStep[];
  /** Changed as well, and cannot be taken back. */
  leftOut: readonly LeftOut[];
}

/** What a rewind needs. */
export interface RewindWorld {
  store: HistoryStore;
  workspace: Workspace;
  session: PlacedSession;
}

/** What is to become of a file. */
interface WantedFile {
  path: string;
  target: FileState | null;
  /** What the session has left there. */
  left: FileState | null;
  /** The changes that are taken back. */
  undone: readonly TracedChange[];
}

interface Wanted {
  files: readonly WantedFile[];
  leftOut: readonly LeftOut[];
}

/**
 * Plans what would bring the files to a place, and does nothing. What the agent left is replaced without
 * a question; what was changed outside of the session since, or in between, is a conflict.
 */
export async function planRewind(world: RewindWorld, to: FilePlace): Promise<RewindPlan> {
  const wanted = "line" in to ? wantBefore(world, to.line) : wantPlace(world, to);
  const steps: RewindStep[] = [];
  for (const file of wanted.files) {
    const step = await planStep(world, file);
    if (step) steps.push(step);
  }
  steps.sort((a, b) => (a.path < b.path ? -1 : 1));
  const leftOut = new Map(wanted.leftOut.map((one) => [one.path, one]));
  return { to, steps, leftOut: [...leftOut.values()] };
}

/** The files of a place of the tree. */
function wantPlace({ store, session }: RewindWorld, place: TreePlace): Wanted {
  const tree = new FileTree(store.lines, session);
  const files = tree.paths.flatMap((path): WantedFile[] => {
    const target = tree.stateAt(path, place);
    const { state: left, made }: LeftFile = tree.findLeft(path);
    // What others have made of it since is theirs: between these places nothing happens to it.
    if (isSameState(left, target)) return [];
    const there = tree.changesAt(path, place).map(({ change }) => change);
    const kept = new Set(there);
    const undone = made.filter(({ change }) => !kept.has(change));
    const file = { path, target, left, undone };
    // Of a rewind that was cut off nothing is to be taken back: the rest of it is to be done.
    const isBack = undone.length > 0 && there.length + undone.length === made.length;
    // After an answer a file is as the agent left it, if the agent ever changed it again.
    const isAsked = "after" in place && isChangedAgain(store.lines, file);
    return isBack && !isAsked ? keepTheirs(file) : [file];
  });
  const there = new Set(tree.linesAt(place));
  const here = new Set(tree.linesAt({ after: session.leaf }));
  const between = store.lines.filter((line) => there.has(line) !== here.has(line));
  return { files, leftOut: between.flatMap(({ leftOut }) => leftOut) };
}

/** Whether a call has changed a file after the first change that would be taken back. */
function isChangedAgain(lines: readonly HistoryLine[], { path, undone }: WantedFile): boolean {
  const first = undone[0]?.index ?? Infinity;
  return lines.some(
    ({ by, changes }, index) =>
      index > first && by !== "user" && changes.some((change) => change.path === path),
  );
}

/** What others have made of a file after a place, before the agent changed it again, is theirs and stays. */
function keepTheirs({ path, target, left, undone }: WantedFile): WantedFile[] {
  const first = undone.findIndex(({ by }) => by !== "user");
  if (first === 0) return [{ path, target, left, undone }];
  const last = undone[first - 1]?.change.after ?? null;
  return first < 0 ? [] : [{ path, target: last, left, undone: undone.slice(first) }];
}

/** The files as they were before a line. */
function wantBefore({ store }: RewindWorld, first: number): Wanted {
  const chains = new Map<string, TracedChange[]>();
  const lines = store.lines.flatMap((line, index) =>
    index >= first && IN_FOLDER.has(line.by) ? [{ line, index }] : [],
  );
  for (const { line, index } of lines) {
    for (const change of line.changes) {
      const chain = chains.get(change.path) ?? [];
      chain.push({ by: line.by, index, change });
      chains.set(change.path, chain);
    }
  }
  const files = [...chains].map(([path, undone]) => ({
    path,
    target: undone[0]?.change.before ?? null,
    left: undone.at(-1)?.change.after ?? null,
    undone,
  }));
  return { files, leftOut: lines.flatMap(({ line }) => line.leftOut) };
}

/** Those that changed files of the folder. */
const IN_FOLDER: ReadonlySet<string> = new Set(["agent", "user", "rewind"]);

async function planStep(
  { store, workspace }: RewindWorld,
  { path, target, left, undone }: WantedFile,
): Promise<RewindStep | undefined> {
  const seen = await snapshotPath(workspace, path);
  const current = computeState(seen);
  const isThere = seen.kind !== "nothing" && seen.kind !== "folder" && seen.kind !== "elsewhere";
  if (isSameState(current, target) && seen.kind !== "skipped") return undefined;
  const why = finalReason(seen, left) ?? (await lostReason(store, target));
  const doubt = why ?? findChange(current, left) ?? findDoubt(undone);
  // What it did not make, or not alone, is never removed.
  const conflict = doubt !== undefined && { why: doubt, isFinal: why !== undefined || !target };
  const lines = why === undefined && (await countLines(store, seen, target));
  return {
    path,
    action: !target ? "remove" : isThere ? "restore" : "recreate",
    current,
    target,
    ...(conflict && { conflict }),
    ...(lines && { lines }),
  };
}

/** What is there, without its content; null also for what is no file. */
export function computeState(seen: PathSnapshot): FileState | null {
  if (seen.kind !== "file" && seen.kind !== "link") return null;
  const { kind, mode, bytes } = seen;
  return { kind, mode, bytes: bytes.length, hash: computeHash(bytes) };
}

/** Why it cannot be replaced, whatever anybody wants. */
function finalReason(seen: PathSnapshot, left: FileState | null): string | undefined {
  switch (seen.kind) {
    case "skipped":
      return `it cannot be kept as it is now: ${seen.why}`;
    case "elsewhere":
    case "folder":
      // Where the agent has removed a file, a folder or link may stand by its doing.
      if (left === null) return undefined;
      return seen.kind === "folder" ? "a folder is there now" : LED_AWAY;
    default:
      return undefined;
  }
}

async function lostReason(
  store: HistoryStore,
  target: FileState | null,
): Promise<string | undefined> {
  if (!target) return undefined;
  try {
    await store.get(target.hash);
    return undefined;
  } catch {
    return "what was kept of it is gone or damaged";
  }
}

/** Why what is there is not what the session has left. */
function findChange(current: FileState | null, left: FileState | null): string | undefined {
  if (isSameState(current, left)) return undefined;
  return current
    ? "it was changed outside of this session since"
    : "it was removed outside of this session since";
}

async function countLines(
  store: HistoryStore,
  seen: PathSnapshot,
  target: FileState | null,
): Promise<RewindStep["lines"]> {
  const old = "bytes" in seen ? decodeText(seen.bytes) : "";
  const next = target ? decodeText(await store.get(target.hash)) : "";
  if (old === undefined || next === undefined) return undefined;
  const before = linesIn(old);
  const after = linesIn(next);
  const kept = alignLines(before, after).reduce((count, at) => count + (at < 0 ? 0 : 1), 0);
  return { added: after.length - kept, removed: before.length - kept };
}

/** A text; undefined where it is something else. */
function decodeText(bytes: Uint8Array): string | undefined {
  return bytes.includes(0) ? undefined : new TextDecoder().decode(bytes);
}

function linesIn(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
