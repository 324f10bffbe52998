import { textOf, type Usage, addUsage } from "@gyre/ai";
import { openSession, type Session } from "@gyre/sessions";
import type { Environment } from "../core/environment.ts";
import { sessionHistoryFolder } from "../file-history/lines/folders.ts";
import {
  type FileState,
  type HistoryLine,
  isSameState,
  type LeftOut,
} from "../file-history/lines/line.ts";
import { HistoryStore } from "../file-history/lines/store.ts";
import { pairMessages } from "../file-history/rewind/fork-history.ts";
import type { Harness } from "../harness/types.ts";
import { type Grafted, graftBranch, listMessages } from "./graft.ts";
import { noteLeaf, type RaceRecord, type RivalRecord, type StoredRace } from "./race-folder.ts";

/** What a file was before one of the rivals changed it, and after; null: not there. Undefined: it is no text. */
export interface RivalFile {
  path: string;
  before: string | null | undefined;
  after: string | null | undefined;
}

/** What one of the rivals has done, as it is on the disk. */
export interface RivalWorkDone {
  record: RivalRecord;
  /** Its last text. */
  answer: string;
  usage: Usage;
  files: readonly RivalFile[];
  /** Changed, and not kept. */
  leftOut: readonly LeftOut[];
}

/** Reads what one of the rivals has done. Its session is closed by then. */
export async function readWork(record: RivalRecord, env: Environment): Promise<RivalWorkDone> {
  const store = await HistoryStore.open(sessionHistoryFolder(env, record.id));
  const session = await openSession(record.path, { readOnly: true });
  try {
    const messages = [];
    for (const id of listNews(session, record)) {
      const entry = await session.read(id);
      if (entry.type === "message") messages.push(entry.message);
    }
    const answers = messages.filter((message) => message.role === "assistant");
    return {
      record,
      answer: answers.map(textOf).findLast((text) => text.trim() !== "") ?? "",
      usage: answers.reduce<Usage>((sum, { usage }) => addUsage(sum, usage), {}),
      files: await readFiles(store),
      leftOut: store.lines.flatMap(({ leftOut }) => leftOut),
    };
  } finally {
    await session.close();
  }
}

function listNews(session: Session, { from }: RivalRecord): number[] {
  const branch = session.findBranch();
  return branch.slice(from === null ? 0 : branch.indexOf(from) + 1);
}

async function readFiles(store: HistoryStore): Promise<RivalFile[]> {
  const states = new Map<string, { before: FileState | null; after: FileState | null }>();
  for (const { changes } of store.lines.filter(isWork)) {
    for (const { path, before, after } of changes) {
      const first = states.get(path) ?? { before };
      states.set(path, { before: first.before, after });
    }
  }
  const read = async (state: FileState | null): Promise<string | null | undefined> => {
    if (!state) return null;
    const bytes = await store.get(state.hash);
    return bytes.includes(0) ? undefined : new TextDecoder().decode(bytes);
  };
  const files: RivalFile[] = [];
  for (const [path, { before, after }] of [...states].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (isSameState(before, after)) continue;
    files.push({ path, before: await read(before), after: await read(after) });
  }
  return files;
}

function isWork({ by }: HistoryLine): boolean {
  return by === "agent";
}

/** The conversation that a race is in, and what is known of its files. */
export type FinishedHarness = Pick<Harness, "fileHistory" | "session" | "spending">;

/**
 * Adds what the rivals did as branches of the session that the race is in, with their files: going to one of them brings
 * its files along. `label` names the last answer of each. The session ends where it did. Gives the last entry of each
 * rival by its number; one that was never asked has none.
 */
export async function importRivals(
  stored: StoredRace,
  harness: FinishedHarness,
  env: Environment,
  label: (rival: RivalRecord) => string,
): Promise<ReadonlyMap<number, number>> {
  const { record } = stored;
  const { session } = harness;
  if (session?.header.id !== record.session) throw new Error("The race is of another session.");
  const here = session.leaf;
  const leaves = new Map<number, number>();
  try {
    for (const rival of record.rivals) {
      const leaf = rival.leaf ?? (await importRival(record, rival, session, harness, env));
      if (leaf === undefined) continue;
      leaves.set(rival.number, leaf);
      if (rival.leaf !== undefined) continue;
      await session.append({ type: "label", entry: leaf, label: label(rival) });
      await noteLeaf(stored, rival.number, leaf);
    }
  } finally {
    await session.branch(here);
  }
  return leaves;
}

async function importRival(
  { at, base }: RaceRecord,
  rival: RivalRecord,
  session: Session,
  { fileHistory, spending }: FinishedHarness,
  env: Environment,
): Promise<number | undefined> {
  const own = await openSession(rival.path, { readOnly: true });
  try {
    if (listNews(own, rival).length === 0) return undefined;
    const shared = pairMessages(own, rival.from, session, at);
    if (!shared) throw new Error("Messages of the session are missing in the copy of it.");
    const grafted = await graftBranch(own, rival.from, session, at, shared);
    for (const message of listMessages(grafted)) spending.addMessage(message);
    const store = await HistoryStore.open(sessionHistoryFolder(env, rival.id));
    const lines = store.lines.filter(isWork).map((line) => toRivalLine(line, grafted));
    await fileHistory?.addRival(store, lines, base);
    return grafted.leaf;
  } finally {
    await own.close();
  }
}

function toRivalLine(line: HistoryLine, { ids }: Grafted): HistoryLine {
  const { entry, leaf = entry } = line;
  return {
    ...line,
    by: "rival",
    entry: ids.get(entry) ?? 0,
    leaf: leaf === null ? null : (ids.get(leaf) ?? null),
  };
}
