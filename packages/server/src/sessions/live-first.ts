import { invalidRequest } from "@gyre/protocol";
import type {
  SessionInfo,
  SessionListRequest,
  SessionPage,
  SessionPageRequest,
  SessionState,
} from "./session-host.ts";

const LIVE = "live:";
const REST = "rest:";
const TIME_DIGITS = 16;

/** A session of a list, with what the server knows of it. */
export type ListedSession = SessionInfo & { isOpen: boolean; state: SessionState };

const RANKS: Readonly<Record<SessionState, number>> = { waiting: 0, running: 1, idle: 2 };

/** Where a session stands in the order `live`: those that wait for an answer, that run, that are open, the others. */
export function formatLiveKey({ id, isOpen, state, updatedAt }: ListedSession): string {
  const rank = state === "idle" && !isOpen ? RANKS.idle + 1 : RANKS[state];
  const time = typeof updatedAt === "number" ? Math.max(0, Math.trunc(updatedAt)) : 0;
  const last = String(Number.MAX_SAFE_INTEGER - time).padStart(TIME_DIGITS, "0");
  return `${rank} ${last} ${id}`;
}

/**
 * A part of the list in the order `live`. `live`: the sessions that are open and asked for, in any
 * order. `readRest` gives parts of all sessions by the last write; those that are open are left out
 * of them, so a part may have fewer than it could.
 */
export async function readLiveFirst(
  { limit, after, ...filter }: SessionListRequest,
  live: readonly ListedSession[],
  readRest: (page: SessionPageRequest) => Promise<SessionPage>,
): Promise<SessionPage> {
  const isRest = after?.startsWith(REST) ?? false;
  if (after !== undefined && !isRest && !after.startsWith(LIVE)) {
    throw invalidRequest('"cursor" is "next" of the page before, of the same order.');
  }
  const first = isRest ? [] : sortLive(live, after?.slice(LIVE.length));
  const last = first[limit - 1];
  if (last && first.length > limit) {
    return { sessions: first.slice(0, limit), next: LIVE + formatLiveKey(last) };
  }
  if (first.length === limit) return { sessions: first, next: REST };
  const cursor = isRest ? (after?.slice(REST.length) ?? "") : "";
  const { sessions, next } = await readRest({
    ...{ ...filter, order: "updated", limit: limit - first.length },
    ...(cursor !== "" && { after: cursor }),
  });
  const open = new Set(live.map(({ id }) => id));
  const others = sessions.filter(({ id }) => !open.has(id));
  return { sessions: [...first, ...others], ...(next !== undefined && { next: REST + next }) };
}

function sortLive(live: readonly ListedSession[], after = ""): ListedSession[] {
  return live
    .map((session) => ({ session, key: formatLiveKey(session) }))
    .filter(({ key }) => key > after)
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ session }) => session);
}
