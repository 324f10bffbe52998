import { invalidRequest } from "@gyre/protocol";
import type { SessionInfo, SessionPage, SessionPageRequest, SessionState } from "./session-host.ts";

/** A part of a list whose host gives all of it. */
export function cutPage(all: readonly SessionInfo[], request: SessionPageRequest): SessionPage {
  const { limit, after, order } = request;
  const isListed = createFilter(request);
  const listed = all.filter((info) => isListed(info));
  if (order !== undefined) {
    const field = order === "updated" ? "updatedAt" : "createdAt";
    listed.sort((a, b) => readTime(b, field) - readTime(a, field));
  }
  const from = after === undefined ? 0 : listed.findIndex(({ id }) => id === after) + 1;
  if (from === 0 && after !== undefined) {
    throw invalidRequest('"cursor" is "next" of the page before; that session is gone.');
  }
  const sessions = listed.slice(from, from + limit);
  const last = from + limit < listed.length ? sessions.at(-1) : undefined;
  return { sessions, ...(last && { next: last.id }) };
}

/** Says which sessions a request is for, by what is known of them. */
export function createFilter({
  archived,
  cwd,
  query = "",
}: Pick<SessionPageRequest, "archived" | "cwd" | "query">): (info: SessionInfo) => boolean {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return (info) => {
    if (cwd !== undefined && info["cwd"] !== cwd) return false;
    if (archived !== undefined && archived !== (info["archived"] === true)) return false;
    const text = `${readText(info, "title")} ${readText(info, "firstPrompt")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

/** What a host says of a session that is not open here. */
export function readState({ isRunning, state }: SessionInfo): SessionState {
  if (isRunning === true) return "running";
  return state === "running" || state === "waiting" ? state : "idle";
}

/** How many parts of a host are read at most for one of sessions that a client may see. */
const MAX_READS = 20;

/** A part of a list without the sessions that are not `isListed`. It may be short, and have a `next`. */
export async function readListed(
  page: SessionPageRequest,
  read: (page: SessionPageRequest) => Promise<SessionPage>,
  isListed: (info: SessionInfo) => boolean,
): Promise<SessionPage> {
  const sessions: SessionInfo[] = [];
  let { after } = page;
  for (let reads = 0; reads < MAX_READS; reads++) {
    const limit = page.limit - sessions.length;
    const found = await read({ ...page, limit, ...(after !== undefined && { after }) });
    sessions.push(...found.sessions.filter(isListed));
    after = found.next;
    if (after === undefined || sessions.length === page.limit) break;
  }
  return { sessions, ...(after !== undefined && { next: after }) };
}

function readText(info: SessionInfo, field: string): string {
  const value = info[field];
  return typeof value === "string" ? value : "";
}

function readTime(info: SessionInfo, field: string): number {
  const value = info[field];
  return typeof value === "number" ? value : 0;
}
