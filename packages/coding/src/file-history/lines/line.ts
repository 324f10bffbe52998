import { isRecord } from "@gyre/ai";

/** What is at a path: a file, or a link that is not followed. */
export interface FileState {
  kind: "file" | "link";
  /** SHA-256 of the content; of a link, of the text that says where it leads. */
  hash: string;
  bytes: number;
  /** The nine bits for owner, group and others; 0 for a link. */
  mode: number;
}

/** What became of a file. */
export interface FileChange {
  /** From the workspace, with slashes. */
  path: string;
  /** Null: nothing was there. */
  before: FileState | null;
  after: FileState | null;
  /** Why another program may have made it. */
  unsure?: string;
}

/** A file that changed and was not kept. */
export interface LeftOut {
  path: string;
  why: string;
}

/** A place that files can be brought to. */
export type FilePlace =
  /** A place in the tree of the session: as they were after an entry; null: before the first. */
  | { after: number | null }
  /** As they were before a prompt: what others changed since the answer before it included. */
  | { before: number }
  /** As they were before a line of the history. */
  | { line: number };

/**
 * What changed files, or what is known of them. `agent`: calls. `rewind`: files were brought to another place. `user`:
 * others, noticed before a prompt, or when a call changed the same file. `carried`: files of another branch were left as they were when the
 * conversation went on elsewhere. `rival`: calls of another agent, in a copy of the folder: the folder itself has it
 * when the place is gone to. `intent`: a rewind is about to begin.
 */
export type LineAuthor = "agent" | "rewind" | "user" | "carried" | "rival" | "intent";
const AUTHORS: ReadonlySet<unknown> = new Set<LineAuthor>([
  "agent",
  "rewind",
  "user",
  "carried",
  "rival",
  "intent",
]);

/** What was changed at one time. */
export interface HistoryLine {
  by: LineAuthor;
  /** The entry of the prompt that it was done for; of a rewind, the newest of the session. */
  entry: number;
  /**
   * The message after which it was done; of a rewind, where the conversation ended before. Null: it had not begun.
   * Absent where an older program wrote it: then it is known by `entry` alone.
   */
  leaf?: number | null;
  /** Of a rewind: the place. Absent where an older program wrote it. */
  to?: FilePlace;
  /** Of a rewind: it was ended in the middle, and has brought these files alone. */
  isCutOff?: true;
  /** Milliseconds since 1970. */
  at: number;
  changes: readonly FileChange[];
  leftOut: readonly LeftOut[];
}

export function isSameState(one: FileState | null, other: FileState | null): boolean {
  if (!one || !other) return one === other;
  return one.kind === other.kind && one.hash === other.hash && one.mode === other.mode;
}

/** A line of the list; undefined where it cannot be parsed, as after a kill in the middle of it. */
export function parseLine(text: string): HistoryLine | undefined {
  if (text === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isLine(value) ? value : undefined;
}

function isLine(value: unknown): value is HistoryLine {
  if (!isRecord(value)) return false;
  const { by, entry, leaf, to, isCutOff, at, changes, leftOut } = value;
  return (
    AUTHORS.has(by) &&
    typeof entry === "number" &&
    typeof at === "number" &&
    (leaf === undefined || leaf === null || typeof leaf === "number") &&
    (to === undefined || isPlace(to)) &&
    (isCutOff === undefined || isCutOff === true) &&
    Array.isArray(changes) &&
    changes.every(isChange) &&
    Array.isArray(leftOut) &&
    leftOut.every(isLeftOut)
  );
}

function isPlace(value: unknown): value is FilePlace {
  if (!isRecord(value)) return false;
  const { after, before, line } = value;
  return after === null || [after, before, line].some((each) => typeof each === "number");
}

function isChange(value: unknown): value is FileChange {
  if (!isRecord(value)) return false;
  const { path, before, after, unsure } = value;
  return (
    typeof path === "string" &&
    isStateOrNull(before) &&
    isStateOrNull(after) &&
    (unsure === undefined || typeof unsure === "string")
  );
}

function isStateOrNull(value: unknown): value is FileState | null {
  if (value === null) return true;
  if (!isRecord(value)) return false;
  const { kind, hash, bytes, mode } = value;
  return (
    (kind === "file" || kind === "link") &&
    // It becomes the name of a file.
    typeof hash === "string" &&
    /^[0-9a-f]{64}$/.test(hash) &&
    typeof bytes === "number" &&
    typeof mode === "number"
  );
}

function isLeftOut(value: unknown): value is LeftOut {
  if (!isRecord(value)) return false;
  return typeof value["path"] === "string" && typeof value["why"] === "string";
}
