import { isRecord } from "@gyre/ai";
import type { SessionStorage } from "./format/storage.ts";
import {
  type Session,
  SessionError,
  type SessionMatch,
  type SessionSearchOptions,
  type SessionSearchPage,
  type SessionSummary,
} from "./format/types.ts";

/** What is read of messages for a page at most: the rest is for the next one. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;
const MAX_PAGE_MESSAGES = 4_000;
/** Sessions that are listed at once. */
const LISTED = 50;
/** What is shown of a text before and behind what was found. */
const EXCERPT_CHARS = 60;

/** Where a page has ended: behind an entry of a session, which is in the part of the list behind `after`. */
interface Place {
  id: string;
  entry: number;
  after: string | undefined;
}

/**
 * Looks for a text in the messages of sessions, the newest session first: the first message of each that has it, in any
 * case. A page ends when it is full, or when so much was read: it may have no match, and a `next`.
 */
export async function searchSessions(
  storage: Pick<SessionStorage, "listPage" | "locate" | "open">,
  options: SessionSearchOptions,
): Promise<SessionSearchPage> {
  const { text, limit, after, signal, ...filter } = options;
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return { matches: [], unreadable: [] };
  const page: SessionSearchPage = { matches: [], unreadable: [] };
  const left = { bytes: MAX_PAGE_BYTES, messages: MAX_PAGE_MESSAGES };
  let resumed = parsePlace(after);
  let listAfter = resumed?.after;
  for (;;) {
    const listed = await storage.listPage({
      ...{ ...filter, limit: LISTED },
      ...(listAfter !== undefined && { after: listAfter }),
    });
    const ids = listed.sessions.map(({ id }) => id);
    // One that is gone meanwhile: its part of the list is looked through again.
    const first = resumed ? Math.max(0, ids.indexOf(resumed.id)) : 0;
    for (const summary of listed.sessions.slice(first)) {
      signal?.throwIfAborted();
      const start = resumed?.id === summary.id ? resumed.entry : 0;
      const place = { id: summary.id, entry: start, after: listAfter };
      if (page.matches.length >= limit || isUsedUp(left)) {
        return { ...page, next: formatPlace(place) };
      }
      const end = await searchOne(storage, summary, { wanted, start, left, page });
      if (end !== undefined) return { ...page, next: formatPlace({ ...place, entry: end }) };
    }
    if (listed.next === undefined) return page;
    resumed = undefined;
    listAfter = listed.next;
  }
}

interface Left {
  bytes: number;
  messages: number;
}

function isUsedUp({ bytes, messages }: Left): boolean {
  return bytes <= 0 || messages <= 0;
}

/** Looks through one session. Returns the entry to go on behind, where the page ends within it. */
async function searchOne(
  storage: Pick<SessionStorage, "locate" | "open">,
  summary: SessionSummary,
  {
    wanted,
    start,
    left,
    page,
  }: { wanted: string; start: number; left: Left; page: SessionSearchPage },
): Promise<number | undefined> {
  let session: Session;
  try {
    const path = await storage.locate(summary.id);
    if (path === undefined) return undefined;
    session = await storage.open(path, { readOnly: true });
  } catch (error) {
    if (!(error instanceof SessionError)) throw error;
    page.unreadable.push(summary.id);
    return undefined;
  }
  try {
    const sizes = new Map(session.entries.map(({ id, bytes }) => [id, bytes]));
    let last = start;
    for (const id of session.findIds("message")) {
      if (id <= start) continue;
      if (isUsedUp(left)) return last;
      last = id;
      left.messages--;
      left.bytes -= sizes.get(id) ?? 0;
      const match = await findIn(session, id, wanted);
      if (!match) continue;
      page.matches.push({ session: summary, ...match });
      return undefined;
    }
    return undefined;
  } finally {
    await session.close();
  }
}

async function findIn(
  session: Session,
  id: number,
  wanted: string,
): Promise<Omit<SessionMatch, "session"> | undefined> {
  const entry = await session.read(id);
  if (entry.type !== "message") return undefined;
  const { message } = entry;
  const text = readText("content" in message ? message.content : undefined);
  const at = text.toLowerCase().indexOf(wanted);
  return at < 0
    ? undefined
    : { entry: id, role: message.role, excerpt: cutExcerpt(text, at, wanted) };
}

function readText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const texts = content.map((block) => (isRecord(block) ? block["text"] : undefined));
  return texts.filter((text) => typeof text === "string").join("\n");
}

/** On one line. No half of a pair is left at its ends. */
function cutExcerpt(text: string, at: number, { length }: string): string {
  const start = Math.max(0, at - EXCERPT_CHARS);
  const cut = text.slice(start, at + length + EXCERPT_CHARS);
  return cut
    .replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, "")
    .trim()
    .replace(/\s+/g, " ");
}

function formatPlace({ id, entry, after = "" }: Place): string {
  return `${entry}/${encodeURIComponent(id)}/${after}`;
}

function parsePlace(text: string | undefined): Place | undefined {
  const [, entry, id, after] = /^(\d+)\/([^/]+)\/(.*)$/s.exec(text ?? "") ?? [];
  if (id === undefined) return undefined;
  return {
    id: decodeURIComponent(id),
    entry: Number(entry),
    after: after === "" ? undefined : after,
  };
}
