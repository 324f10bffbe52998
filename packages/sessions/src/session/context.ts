import type { Compaction } from "@gyre/agent";
import type { Entry, SessionSettings } from "../format/entry.ts";
import type { EntryIndex } from "./entry-index.ts";
import { parseEntry, type Fields, readReference } from "../format/body.ts";
import type { EntryReader } from "./log.ts";
import { readOpenCalls, type ResultEntry } from "./open-calls.ts";
import { readInterrupted } from "./interrupted.ts";
import { NONE_QUEUED, readQueued } from "./queued.ts";
import { Transcript } from "../format/transcript.ts";
import type { SessionContext } from "../format/types.ts";

type CompactionEntry = Extract<Entry, { type: "compaction" }>;

/** A context, and the results in it that have no message yet, by call id. */
export interface BuiltContext {
  context: SessionContext;
  recorded: Map<string, ResultEntry>;
}

/**
 * Reads what an agent needs of the branch that ends at a place (-1: none), and nothing else.
 * `isLeaf`: the agent goes on there, with what waits for it. `onLost` gets a message that can no
 * longer be assembled.
 */
export async function buildContext(
  index: EntryIndex,
  reader: EntryReader,
  at: number,
  isLeaf: boolean,
  onLost: (at: number, message: string) => void,
): Promise<BuiltContext> {
  const path = index.pathTo(at);
  const compaction = await newestCompaction(index, reader, path);
  const isLeftOut = compaction ? leftOutBy(compaction) : () => false;
  const titleAt = path.findLast((place) => index.typeAt(place) === "title");
  const isNeeded = (place: number): boolean => {
    const type = index.typeAt(place);
    if (type === "message") return !isLeftOut(index.idAt(place));
    return type === "settings" || place === titleAt;
  };
  const lines = new Map<number, Fields>();
  await reader.each(path.filter(isNeeded), (fields, place) => void lines.set(place, fields));
  const results = await referredTo(index, reader, lines);

  const transcript = new Transcript();
  const settings: SessionSettings = {};
  let title: string | undefined;
  /** Messages whose calls have a `begin` if they began. */
  const recording = new Set<number>();
  let from = -1;
  const standIn = (): void => {
    if (!compaction?.message || from >= 0) return;
    from = transcript.messages.length;
    transcript.add(compaction.message, compaction.id);
  };
  for (const place of path) {
    const info = index.infoAt(place);
    if (compaction && info.type === "message" && info.id >= compaction.first) standIn();
    const fields = lines.get(place);
    if (!fields) continue;
    const entry = parseEntry(fields, info, results.get(readReference(fields) ?? 0));
    if (!entry) onLost(place, `Entry ${info.id} is left out: what it is made of is missing`);
    else if (entry.type === "message") {
      transcript.add(entry.message, entry.id);
      if (entry.begins) recording.add(entry.id);
    } else if (entry.type === "settings") Object.assign(settings, entry.settings);
    else if (entry.type === "title") title = entry.title;
  }
  standIn();
  const calls = await readOpenCalls(index, reader, path, transcript.unanswered());
  const end = isLeaf ? index.length - 1 : at;
  const interrupted = await readInterrupted(index, reader, path, end);
  return {
    context: {
      messages: transcript.messages,
      entries: transcript.entries,
      ...(compaction && { compaction: restored(compaction, from) }),
      settings,
      ...(title !== undefined && { title }),
      pending: calls.pending(),
      ...(interrupted && { interrupted }),
      queued: isLeaf ? await readQueued(index, reader) : NONE_QUEUED,
      unfinished: (toolCallId) => calls.unfinished(toolCallId, recording),
    },
    recorded: calls.recorded,
  };
}

/** A compaction whose message is in its place already. */
function restored({ message, shortened, facts }: CompactionEntry, from: number): Compaction {
  return {
    ...(message ? { from, to: from + 1, message } : { from: 0, to: 0 }),
    ...(shortened && { shortened }),
    ...(facts && { facts }),
  };
}

/** Which messages a compaction stands for. Ids go up along a branch. */
function leftOutBy({ id, first, until, entries }: CompactionEntry): (entry: number) => boolean {
  if (entries) {
    const listed = new Set(entries);
    return (entry) => listed.has(entry);
  }
  return (entry) => entry >= first && entry < (until ?? id);
}

async function newestCompaction(
  index: EntryIndex,
  reader: EntryReader,
  path: readonly number[],
): Promise<CompactionEntry | undefined> {
  for (const place of path.toReversed()) {
    if (index.typeAt(place) !== "compaction") continue;
    const entry = parseEntry(await reader.one(place), index.infoAt(place));
    if (entry?.type === "compaction") return entry;
  }
  return undefined;
}

/** The lines of the results that messages refer to, by id. */
async function referredTo(
  index: EntryIndex,
  reader: EntryReader,
  lines: ReadonlyMap<number, Fields>,
): Promise<Map<number, Fields>> {
  const places = [...lines.values()]
    .map((fields) => index.find(readReference(fields) ?? 0))
    .filter((place) => place >= 0);
  const results = new Map<number, Fields>();
  await reader.each(
    [...new Set(places)].sort((a, b) => a - b),
    (fields, at) => void results.set(index.idAt(at), fields),
  );
  return results;
}
