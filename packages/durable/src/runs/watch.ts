import type { AgentEvent } from "@gyre/agent";
import { DurableError } from "../contract/errors.ts";
import { LiveView } from "../live/view.ts";
import { findMessage } from "../contract/messages.ts";
import { EntryDecoder, READ_AT_ONCE, readEnd, toEndEvent, toEvent } from "./read-log.ts";
import type { Runs } from "./runs.ts";
import { Wakeup } from "./wakeup.ts";
import type { RunRow, StoredEntry } from "../contract/store.ts";
import type { RunEvent, WatchOptions } from "../contract/types.ts";

/** The events of a run by number, from the log, with live events between. */
export async function* watchRun(
  runs: Runs,
  id: string,
  { after, deltas = true, signal }: WatchOptions,
): AsyncGenerator<RunEvent, void, void> {
  const { store } = runs;
  const first = await readRun(runs, id);
  const { session } = first;
  const wakeup = new Wakeup();
  let hasGrown = true;
  const onGrowth = (): void => {
    hasGrown = true;
    wakeup.wake();
  };
  const stops = [runs.logs.watch(session, onGrowth)];
  try {
    let row: RunRow = first;
    while (row.firstSeq === undefined && !signal?.aborted) {
      if (row.status === "ended") return yield toUnbegun(row, after);
      await wakeup.wait(signal);
      wakeup.reset();
      row = await readRun(runs, id);
    }
    const decoder = new EntryDecoder(store, session);
    let seq = Math.max(after ?? 0, (row.firstSeq ?? 1) - 1);
    const live = deltas ? openView(runs, session, seq, wakeup.wake) : undefined;
    if (live) stops.push(() => live.close());
    while (!signal?.aborted) {
      wakeup.reset();
      if (live) yield* live.take(seq);
      // Deltas come by the hundred: the store is asked only where the log may have grown.
      if (!hasGrown) {
        await wakeup.wait(signal);
        continue;
      }
      hasGrown = false;
      const rows = await store.readEntriesAfter(session, seq, READ_AT_ONCE);
      for (const stored of rows) {
        if (live) yield* live.take(seq);
        const end = readEnd(stored);
        const event = end?.run === id ? toEndEvent(end) : toEvent(await decoder.decode(stored));
        if (live && event) yield* finishLive(live, event, stored, seq);
        seq = stored.id;
        if (event) yield { seq, activation: stored.token, event };
        if (end?.run === id && end.stop !== "suspended") {
          row = await readRun(runs, id);
          // A run that was retried goes on behind its first end.
          if (row.status === "ended" && (row.lastSeq ?? seq) <= seq) return;
        }
      }
      if (rows.length > 0) {
        hasGrown = true;
        continue;
      }
      row = await readRun(runs, id);
      if (row.status === "ended" && (row.lastSeq ?? 0) <= seq) return;
    }
  } finally {
    for (const stop of stops) stop();
  }
}

/** Live events of a session for a reader that begins behind the entry `from`. */
function openView(runs: Runs, session: string, from: number, onEvent: () => void): LiveView {
  return new LiveView({
    listen: (listener) =>
      runs.live.follow(session, (event) => {
        listener(event);
        onEvent();
      }),
    catchUp: (listener) => runs.live.catchUp(session, listener),
    findAnswer: async (base) => {
      if (base >= from) return 0;
      const rows = await runs.store.readEntriesAfter(session, base, from - base);
      return rows.findLast(isAnswer)?.id ?? 0;
    },
  });
}

function isAnswer({ type, data }: StoredEntry): boolean {
  return type === "message" && findMessage(data)?.role === "assistant";
}

/** The log has the end of something that may have been shown live. */
function* finishLive(
  live: LiveView,
  event: AgentEvent,
  { id, token }: StoredEntry,
  seq: number,
): Generator<RunEvent, void, void> {
  if (event.type === "tool_execution_end") live.endCall(event.toolCallId);
  if (event.type !== "message_end" || event.message.role !== "assistant") return;
  yield* live.finish(event.message, { id, token, seq });
}

/** The end of a run that never began, as it was aborted before or is damaged: the log has nothing of it. */
function toUnbegun({ id, stop, error, usage }: RunRow, after = 0): RunEvent {
  const end = {
    ...{ run: id, turns: 0, usage: JSON.parse(usage), pending: [] },
    stop: stop === "error" ? ("error" as const) : ("aborted" as const),
    ...(error !== undefined && { errorMessage: error }),
  };
  return { seq: after, activation: 0, event: toEndEvent(end) };
}

async function readRun(runs: Runs, id: string): Promise<RunRow> {
  const row = await runs.store.readRun(id);
  if (row) return row;
  throw new DurableError("not_found", `There is no run "${id}": list() has those that there are.`);
}

/** Waits until a run has ended. Undefined: the signal has fired before. */
export async function waitForEnd(
  runs: Runs,
  id: string,
  signal: AbortSignal | undefined,
): Promise<RunRow | undefined> {
  const { session } = await readRun(runs, id);
  const wakeup = new Wakeup();
  const stop = runs.logs.watch(session, wakeup.wake);
  try {
    while (!signal?.aborted) {
      wakeup.reset();
      const row = await readRun(runs, id);
      if (row.status === "ended") return row;
      await wakeup.wait(signal);
    }
    return undefined;
  } finally {
    stop();
  }
}
