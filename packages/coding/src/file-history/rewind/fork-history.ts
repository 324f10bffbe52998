import type { Session, SessionStore } from "@gyre/sessions";
import { sessionHistoryFolder } from "../lines/folders.ts";
import { type HistoryLine, isSameState } from "../lines/line.ts";
import { HistoryStore } from "../lines/store.ts";
import { FileTree } from "./file-tree.ts";

export interface ForkOptions {
  cwd: string;
  /** Where the copy ends; null: before the first entry. Default: where the session does. */
  entry?: number | null;
  env: Readonly<Record<string, string | undefined>>;
  /** Files were just brought to that place: in the copy that can be taken back. Default: false. */
  withRewind?: boolean;
}

/** Makes a copy of a session, with what is known of its files. Open, and closed by the caller. */
export async function forkSession(
  store: SessionStore,
  idOrPath: string,
  { cwd, entry, env, withRewind = false }: ForkOptions,
): Promise<Session> {
  const source = await store.open(idOrPath, { readOnly: true });
  try {
    const end = entry === undefined ? source.leaf : entry;
    const copy = await store.fork(source.path, { cwd, entry: end });
    // What is known of the files of one folder says nothing of those of another.
    if (cwd === source.header.cwd) await copyHistory(env, { source, end, copy, withRewind });
    return copy;
  } finally {
    await source.close();
  }
}

interface CopiedSession {
  source: Session;
  /** Where the copy ends. */
  end: number | null;
  copy: Session;
  withRewind: boolean;
}

async function copyHistory(
  env: ForkOptions["env"],
  { source, end, copy, withRewind }: CopiedSession,
): Promise<void> {
  const from = await HistoryStore.open(sessionHistoryFolder(env, source.header.id));
  const ids = pairMessages(source, end, copy, copy.leaf);
  if (from.lines.length === 0 || !ids) return;
  const tree = new FileTree(from.lines, source);
  const place = { after: end };
  const lines: HistoryLine[] = tree.linesAt(place).map((line) => ({
    ...line,
    entry: ids.get(line.entry) ?? 0,
    leaf: ids.get(line.leaf ?? line.entry) ?? null,
  }));
  const last = from.lines.findLast(({ by }) => by === "rewind");
  const leaf = [...ids.values()].at(-1) ?? null;
  const moment = { entry: copy.entries.at(-1)?.id ?? 0, leaf: copy.leaf };
  if (withRewind && last) lines.push({ ...last, ...moment, to: { after: leaf } });
  const carried = tree.paths.flatMap((path) => {
    const before = tree.stateAt(path, place);
    const { state: after } = tree.findLeft(path);
    return isSameState(before, after) ? [] : [{ path, before, after }];
  });
  const now = { by: "carried", entry: 0, leaf, at: Date.now(), leftOut: [] } as const;
  if (carried.length > 0) lines.push({ ...now, changes: carried });
  // What the files were that other branches alone have changed.
  const start = tree.paths.map((path) => {
    const state = tree.stateAt(path, { after: null });
    return { path, before: state, after: state };
  });
  lines.unshift({ ...now, leaf: null, changes: start });
  const to = await HistoryStore.open(sessionHistoryFolder(env, copy.header.id));
  for (const line of lines) await copyLine(from, to, line);
}

/** Adds a line of another history, with the contents that it names. */
export async function copyLine(
  from: HistoryStore,
  to: HistoryStore,
  line: HistoryLine,
): Promise<void> {
  for (const { before, after } of line.changes) {
    for (const state of [before, after]) if (state) await to.copyFrom(from, state.hash);
  }
  await to.append(line);
}

/** The messages of a branch, and those of a copy of it, each up to an entry; undefined where some of them are lost. */
export function pairMessages(
  source: Session,
  end: number | null,
  copy: Session,
  copyEnd: number | null,
): Map<number, number> | undefined {
  const had = listMessages(source, end);
  const has = listMessages(copy, copyEnd);
  if (had.length !== has.length) return undefined;
  return new Map(had.map((id, index) => [id, has[index] ?? 0]));
}

function listMessages(session: Session, end: number | null): number[] {
  const messages = new Set(session.findIds("message"));
  return session.findBranch(end).filter((id) => messages.has(id));
}
