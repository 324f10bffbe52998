import { alignLines, type Workspace } from "@gyre/tools";
import { type FileChange, type FileState, isSameState, type LeftOut } from "./line.ts";
import { snapshotPath, type PathSnapshot } from "./snapshot.ts";
import { computeHash, type HistoryStore } from "./store.ts";

export const LED_AWAY = "a link on the way leads elsewhere";

/** From where on all is taken back: what was done for a prompt, or a line of the history. */
export type RewindFrom = { entry: number } | { line: number };

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
  steps: readonly RewindStep[];
  /** Changed as well, and cannot be taken back. */
  leftOut: readonly LeftOut[];
}

/** What a rewind needs. */
export interface RewindWorld {
  store: HistoryStore;
  workspace: Workspace;
}

/**
 * Plans what a rewind would do, and does nothing. What the agent left is replaced without
 * a question; what was changed outside of the session since, or in between, is a conflict.
 */
export async function planRewind(world: RewindWorld, from: RewindFrom): Promise<RewindPlan> {
  const lines = world.store.lines.filter((line, index) =>
    "line" in from ? index >= from.line : line.entry >= from.entry,
  );
  const chains = new Map<string, FileChange[]>();
  for (const change of lines.flatMap(({ changes }) => changes)) {
    const chain = chains.get(change.path);
    if (chain) chain.push(change);
    else chains.set(change.path, [change]);
  }
  const steps: RewindStep[] = [];
  for (const [path, chain] of chains) {
    const step = await planStep(world, path, chain);
    if (step) steps.push(step);
  }
  steps.sort((a, b) => (a.path < b.path ? -1 : 1));
  const leftOut = new Map(lines.flatMap((line) => line.leftOut).map((one) => [one.path, one]));
  return { steps, leftOut: [...leftOut.values()] };
}

async function planStep(
  { store, workspace }: RewindWorld,
  path: string,
  chain: readonly FileChange[],
): Promise<RewindStep | undefined> {
  const target = chain[0]?.before ?? null;
  const seen = await snapshotPath(workspace, path);
  const current = computeState(seen);
  const isThere = seen.kind !== "nothing" && seen.kind !== "folder" && seen.kind !== "elsewhere";
  if (isSameState(current, target) && seen.kind !== "skipped") return undefined;
  const why = finalReason(seen, chain) ?? (await lostReason(store, target));
  const doubt = why ?? findDoubt(current, chain);
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
function finalReason(seen: PathSnapshot, chain: readonly FileChange[]): string | undefined {
  switch (seen.kind) {
    case "skipped":
      return `it cannot be kept as it is now: ${seen.why}`;
    case "elsewhere":
    case "folder":
      // Where the agent has removed a file, a folder or link may stand by its doing.
      if (chain.at(-1)?.after === null) return undefined;
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

/** Why what is there may not be the agent's doing. */
function findDoubt(current: FileState | null, chain: readonly FileChange[]): string | undefined {
  if (!isSameState(current, chain.at(-1)?.after ?? null)) {
    return current
      ? "it was changed outside of this session since"
      : "it was removed outside of this session since";
  }
  const isBroken = chain.some((change, index) => {
    const next = chain[index + 1];
    return next !== undefined && !isSameState(change.after, next.before);
  });
  if (isBroken) return "it was changed outside of this session in between";
  return chain.find(({ unsure }) => unsure !== undefined)?.unsure;
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
