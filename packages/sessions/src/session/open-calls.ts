import type { PendingCall, UnfinishedCall } from "@gyre/agent";
import type { ToolCall } from "@gyre/ai";
import type { Entry } from "../format/entry.ts";
import { parseEntry } from "../format/body.ts";
import type { EntryIndex } from "./entry-index.ts";
import type { EntryReader } from "./log.ts";

export type ResultEntry = Extract<Entry, { type: "result" }>;
/** The newest of them says how far a call has come. */
type CallEntry = Extract<Entry, { type: "begin" | "pending" | "decision" }>;

/** A call without a result in the transcript, and the entry of its message. */
interface OpenCall {
  call: ToolCall;
  entry: number;
}

/** What the file says about calls without a result: it stands beside the branch, after the call. */
export async function readOpenCalls(
  index: EntryIndex,
  reader: EntryReader,
  path: readonly number[],
  calls: ReadonlyMap<string, OpenCall>,
): Promise<OpenCalls> {
  const open = new OpenCalls(calls);
  if (calls.size === 0) return open;
  const since = Math.min(...[...calls.values()].map(({ entry }) => entry));
  const onBranch = new Set(path.map((place) => index.idAt(place)));
  const places: number[] = [];
  for (let place = index.find(since) + 1; place < index.length; place++) {
    const type = index.typeAt(place);
    const isWanted =
      type === "result" || type === "begin" || type === "pending" || type === "decision";
    // A call has begun on whatever branch it did.
    if (isWanted && (type === "begin" || onBranch.has(index.parentAt(place)))) places.push(place);
  }
  await reader.each(places, (fields, at) => {
    const entry = parseEntry(fields, index.infoAt(at));
    if (entry) open.add(entry, onBranch.has(index.parentAt(at)));
  });
  return open;
}

class OpenCalls {
  /** Results that have no message yet, by call id. */
  readonly recorded: Map<string, ResultEntry> = new Map();
  readonly #calls: ReadonlyMap<string, OpenCall>;
  readonly #states = new Map<string, CallEntry>();
  /** Calls that began on another branch. */
  readonly #begunElsewhere = new Set<string>();

  constructor(calls: ReadonlyMap<string, OpenCall>) {
    this.#calls = calls;
  }

  /** Takes an entry of the file, in order. */
  add(entry: Entry, isOnBranch: boolean): void {
    if (!("toolCallId" in entry) || !this.#calls.has(entry.toolCallId)) return;
    if (!isOnBranch) this.#begunElsewhere.add(entry.toolCallId);
    else if (entry.type === "result") this.recorded.set(entry.toolCallId, entry);
    else this.#states.set(entry.toolCallId, entry);
  }

  pending(): PendingCall[] {
    return [...this.#calls].flatMap(([id, { call: toolCall }]) => {
      const state = this.#states.get(id);
      if (state?.type !== "pending" || this.recorded.has(id)) return [];
      const { reason, access, fingerprint } = state;
      return {
        toolCall,
        reason,
        ...(access && { access }),
        ...(fingerprint !== undefined && { fingerprint }),
      };
    });
  }

  /** `recording`: messages whose calls have a `begin` if they began. */
  unfinished(id: string, recording: ReadonlySet<number>): UnfinishedCall | undefined {
    const entry = this.recorded.get(id);
    if (entry) {
      const { result, outcome, reason } = entry;
      return {
        ...result,
        ...(outcome !== undefined && { outcome }),
        ...(reason !== undefined && { reason }),
      };
    }
    const state = this.#states.get(id);
    if (state?.type === "decision") return state.decision;
    if (state?.type === "begin" || (!state && this.#begunElsewhere.has(id))) return undefined;
    return state || recording.has(this.#calls.get(id)?.entry ?? 0) ? "not begun" : undefined;
  }
}
