import type { Compaction } from "@gyre/agent";
import type { Entry, SessionSettings } from "../format/entry.ts";
import type { EntryIndex } from "./entry-index.ts";
import { parseEntry, type Fields, readReference } from "../format/line.ts";
import type { LineReader } from "./line-reader.ts";
import { Transcript } from "../format/transcript.ts";
import type { SessionContext } from "../format/types.ts";

export type ResultEntry = Extract<Entry, { type: "result" }>;
type CompactionEntry = Extract<Entry, { type: "compaction" }>;

/** A context, and the results in it that have no message yet, by call id. */
export interface BuiltContext {
  context: SessionContext;
  recorded: Map<string, ResultEntry>;
}

/**
 * Reads what an agent needs of the branch that ends at a place (-1: none), and nothing else.
 * `onLost` gets a message that can no longer be assembled.
 */
export async function buildContext(
  index: EntryIndex,
  reader: LineReader,
  at: number,
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
  const lines = await reader.many(path.filter(isNeeded));
  const results = await referredTo(index, reader, lines);

  const transcript = new Transcript();
  const settings: SessionSettings = {};
  let title: string | undefined;
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
    else if (entry.type === "message") transcript.add(entry.message, entry.id);
    else if (entry.type === "settings") Object.assign(settings, entry.settings);
    else if (entry.type === "title") title = entry.title;
  }
  standIn();
  const recorded = await recordedResults(index, reader, path, transcript);
  return {
    context: {
      messages: transcript.messages,
      entries: transcript.entries,
      ...(compaction && { compaction: restored(compaction, from) }),
      settings,
      ...(title !== undefined && { title }),
      recordedResult: (toolCallId) => {
        const entry = recorded.get(toolCallId);
        if (entry === undefined) return undefined;
        const { result, outcome, reason } = entry;
        return {
          ...result,
          ...(outcome !== undefined && { outcome }),
          ...(reason !== undefined && { reason }),
        };
      },
    },
    recorded,
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
  reader: LineReader,
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
  reader: LineReader,
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

/** What calls gave whose messages are missing: written beside the branch, after the call. */
async function recordedResults(
  index: EntryIndex,
  reader: LineReader,
  path: readonly number[],
  transcript: Transcript,
): Promise<Map<string, ResultEntry>> {
  const recorded = new Map<string, ResultEntry>();
  const { calls, since } = transcript.unanswered();
  if (calls.size === 0) return recorded;
  const onBranch = new Set(path.map((place) => index.idAt(place)));
  const places: number[] = [];
  for (let place = index.find(since) + 1; place < index.length; place++) {
    if (index.typeAt(place) === "result" && onBranch.has(index.parentAt(place))) places.push(place);
  }
  await reader.each(places, (fields, at) => {
    const entry = parseEntry(fields, index.infoAt(at));
    if (entry?.type === "result" && calls.has(entry.toolCallId)) {
      recorded.set(entry.toolCallId, entry);
    }
  });
  return recorded;
}
