import type { SessionPage, SessionSummary } from "./types.ts";

/** By the last write or by the time that they were made, the newest first. */
export type SessionOrder = "created" | "updated";

/** Which sessions are listed. Absent fields leave nothing out. */
export interface SessionListOptions {
  /** The folder that they work in. */
  cwd?: string;
  /** True: those that are archived alone; false: the others. */
  archived?: boolean;
  /** Words that all stand in the title or the first prompt, in any case. */
  query?: string;
}

/** A part of a list. */
export interface SessionPageOptions extends SessionListOptions {
  limit: number;
  /** `next` of the page before, of the same list. */
  after?: string;
  /** Default: `created`, which does not change between two pages. */
  order?: SessionOrder;
}

/** Digits of a time in a key, so that keys are in the order of times. */
const TIME_DIGITS = 16;

/** A time as the beginning of a key. */
export function formatTimeKey(time: number): string {
  return String(Math.max(0, Math.trunc(time))).padStart(TIME_DIGITS, "0");
}

/** The words of a query. */
export function splitWords(query: string): string[] {
  return query.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Where words are looked for. */
export function searchText({ title = "", firstPrompt = "" }: SessionSummary): string {
  return `${title} ${firstPrompt}`.toLowerCase();
}

/** Says which sessions are listed; what they work in aside. */
export function createFilter({
  archived,
  query = "",
}: SessionListOptions): (summary: SessionSummary, text?: string) => boolean {
  const words = splitWords(query);
  return (summary, text) => {
    if (archived !== undefined && archived !== (summary.archived ?? false)) return false;
    if (words.length === 0) return true;
    const searched = text ?? searchText(summary);
    return words.every((word) => searched.includes(word));
  };
}

/**
 * The part of a list that follows a key. `all` stands in descending order of `formatKey`; the end is
 * known only where nothing follows that is listed.
 */
export function cutPage<T>(
  all: readonly T[],
  { limit, after }: Pick<SessionPageOptions, "limit" | "after">,
  formatKey: (each: T) => string,
  isListed: (each: T) => boolean,
): { page: T[]; next?: string } {
  const page: T[] = [];
  for (const each of all) {
    if (after !== undefined && formatKey(each) >= after) continue;
    if (!isListed(each)) continue;
    const last = page.at(-1);
    if (page.length >= limit && last !== undefined) return { page, next: formatKey(last) };
    page.push(each);
  }
  return { page };
}

/** A part of the list of sessions whose summaries are all at hand. For stores that keep them in memory. */
export function pageSessions(
  all: Iterable<SessionSummary>,
  options: SessionPageOptions,
): SessionPage {
  const { cwd, order = "created" } = options;
  const time = order === "updated" ? "updatedAt" : "createdAt";
  const formatKey = (each: SessionSummary): string => `${formatTimeKey(each[time])}_${each.id}`;
  const isListed = createFilter(options);
  const sorted = [...all]
    .filter((each) => cwd === undefined || each.cwd === cwd)
    .sort((a, b) => (formatKey(a) < formatKey(b) ? 1 : -1));
  const { page, ...more } = cutPage(sorted, options, formatKey, (each) => isListed(each));
  return { sessions: page, ...more };
}
