import type { AgentEndEvent, AgentEvent, AgentMessage } from "@gyre/agent";
import { isRecord } from "@gyre/ai";
import { type Entry, type EntryLogSession, openEntryLog, SESSION_VERSION } from "@gyre/sessions";
import type { RunRow, Store, StoredEntry } from "../contract/store.ts";
import type { ActivationInfo } from "../contract/types.ts";

/** Entries that are read at once. */
export const READ_AT_ONCE = 500;

/** What the entry of an end holds, of a run or of an activation of it. */
export type StoredEnd = Pick<
  AgentEndEvent,
  "stop" | "limit" | "errorMessage" | "turns" | "usage" | "pending"
> & { run: string };

/** Makes entries of rows: a message of a result is stored as a reference to the result. */
export class EntryDecoder {
  readonly #store: Store;
  readonly #session: string;
  readonly #results = new Map<number, StoredEntry>();

  constructor(store: Store, session: string) {
    this.#store = store;
    this.#session = session;
  }

  async decode(row: StoredEntry): Promise<Entry> {
    if (row.type === "result") this.#results.set(row.id, row);
    const reference = readReference(row);
    const result = reference === undefined ? undefined : await this.#readResult(reference);
    return openRows(this.#session, result ? [result, row] : [row]).read(row.id);
  }

  async #readResult(id: number): Promise<StoredEntry | undefined> {
    const known = this.#results.get(id);
    this.#results.delete(id);
    return known ?? (await this.#store.readEntries(this.#session, [id]))[0];
  }
}

function readReference({ type, data }: StoredEntry): number | undefined {
  const [, id] = (type === "message" && /^\{"resultOf":(\d+)\}$/.exec(data)) || [];
  return id === undefined ? undefined : Number(id);
}

/** A session over some of its rows, to read those. */
function openRows(id: string, rows: readonly StoredEntry[]): EntryLogSession {
  return openEntryLog({
    header: { type: "session", version: SESSION_VERSION, id, createdAt: 0, cwd: "" },
    entries: rows.map((row) => ({ ...row, bytes: row.data.length })),
    readOnly: true,
    log: {
      append: () => Promise.reject(new Error("It is only read.")),
      read: async (ids) => rows.filter((row) => ids.includes(row.id)),
    },
  });
}

/** The rows of a session behind `after`, as far as there are some now. */
export async function* readRows(
  store: Store,
  session: string,
  after: number = 0,
): AsyncGenerator<StoredEntry, void, void> {
  for (let last = after; ;) {
    const rows = await store.readEntriesAfter(session, last, READ_AT_ONCE);
    yield* rows;
    last = rows.at(-1)?.id ?? last;
    if (rows.length < READ_AT_ONCE) return;
  }
}

async function* readRunRows(store: Store, run: RunRow): AsyncGenerator<StoredEntry, void, void> {
  const { firstSeq, lastSeq = Infinity } = run;
  if (firstSeq === undefined) return;
  for await (const row of readRows(store, run.session, firstSeq - 1)) {
    if (row.id > lastSeq) return;
    yield row;
  }
}

/** The messages of a run so far; results stand next to their calls. */
export async function readRunMessages(store: Store, run: RunRow): Promise<AgentMessage[]> {
  const decoder = new EntryDecoder(store, run.session);
  const messages: AgentMessage[] = [];
  for await (const row of readRunRows(store, run)) {
    const entry = await decoder.decode(row);
    if (entry.type === "message") messages.push(entry.message);
  }
  return messages;
}

/** The parts of a run, by the token of the worker that wrote them. */
export async function readActivations(store: Store, run: RunRow): Promise<ActivationInfo[]> {
  const found = new Map<number, ActivationInfo>();
  for await (const row of readRunRows(store, run)) {
    const { token: activation, timestamp } = row;
    // The prompt is written before a worker has claimed it.
    if (row.id === run.firstSeq && row.type === "message") continue;
    const before = found.get(activation);
    const stop = readEnd(row)?.stop;
    const at = new Date(timestamp);
    found.set(activation, {
      ...{ activation, from: before?.from ?? at, to: at, entries: (before?.entries ?? 0) + 1 },
      ...(stop && { stop }),
    });
  }
  return [...found.values()];
}

/** The event of an entry; nothing where it has none. */
export function toEvent(entry: Entry): AgentEvent | undefined {
  switch (entry.type) {
    case "message":
      return { type: "message_end", message: entry.message };
    case "begin": {
      const { toolCallId, toolName } = entry;
      return { type: "tool_execution_start", toolCallId, toolName, args: {} };
    }
    case "result": {
      const { toolCallId, toolName, isError, reason, outcome = isError ? "error" : "ok" } = entry;
      const result = { ...entry.result, outcome, ...(reason !== undefined && { reason }) };
      return {
        type: "tool_execution_end",
        ...{ toolCallId, toolName, result, outcome, isError, durationMs: 0 },
        ...(reason !== undefined && { reason }),
      };
    }
    default:
      return undefined;
  }
}

/** How a run, or a part of it, ended, where a row says so. */
export function readEnd({ type, data }: StoredEntry): StoredEnd | undefined {
  if (type !== "end") return undefined;
  const end: unknown = JSON.parse(data);
  return isRecord(end) && typeof end["run"] === "string"
    ? (end as unknown as StoredEnd)
    : undefined;
}

export function toEndEvent({ run: _run, ...end }: StoredEnd): AgentEndEvent {
  return { type: "agent_end", messages: [], undelivered: [], ...end };
}
