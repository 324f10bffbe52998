import { grouped } from "../text/text.ts";
import { listedName } from "../text/truncate.ts";

/** Entries of a status that are shown. */
export const MAX_STATUS_ENTRIES = 300;
const SHORT_ID = 8;

const FIELDS_OF_CHANGE = 8;
const FIELDS_OF_RENAME = 9;
const FIELDS_OF_CONFLICT = 10;

/** What `status --porcelain=v2 --branch -z` says. */
export interface Status {
  /** The commit; nothing where there is none yet. */
  commit?: string;
  /** Nothing where the head is detached. */
  branch?: string;
  upstream?: string;
  ahead: number;
  behind: number;
  staged: string[];
  unstaged: string[];
  conflicts: string[];
  untracked: string[];
}

/**
 * Takes apart what `status --porcelain=v2 --branch -z` gives. Names are those below `prefix`,
 * without it.
 */
export function parseStatus(output: string, prefix = ""): Status {
  const formatName = (path: string): string => listedName(path.slice(prefix.length));
  const status: Status = {
    ahead: 0,
    behind: 0,
    staged: [],
    unstaged: [],
    conflicts: [],
    untracked: [],
  };
  const entries = output.split("\0");
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index] ?? "";
    if (entry.startsWith("# ")) takeHeader(status, entry);
    else if (entry.startsWith("? ")) status.untracked.push(formatName(entry.slice(2)));
    else if (entry.startsWith("u ")) {
      const { state, path } = splitEntry(entry, FIELDS_OF_CONFLICT);
      status.conflicts.push(`${state} ${formatName(path)}`);
    } else if (entry.startsWith("1 ")) {
      const { state, path } = splitEntry(entry, FIELDS_OF_CHANGE);
      takeChange(status, state, formatName(path));
    } else if (entry.startsWith("2 ")) {
      const { state, path } = splitEntry(entry, FIELDS_OF_RENAME);
      // The name before comes as an entry of its own.
      const before = entries[++index] ?? "";
      const from = before.startsWith(prefix) ? formatName(before) : "(outside of the workspace)";
      takeChange(status, state, `${from} -> ${formatName(path)}`);
    }
  }
  return status;
}

function takeHeader(status: Status, entry: string): void {
  const [, key, ...rest] = entry.split(" ");
  const value = rest.join(" ");
  if (key === "branch.oid" && value !== "(initial)") status.commit = value.slice(0, SHORT_ID);
  if (key === "branch.head" && value !== "(detached)") status.branch = value;
  if (key === "branch.upstream") status.upstream = value;
  if (key === "branch.ab") {
    const [ahead = "0", behind = "0"] = rest;
    status.ahead = Math.abs(Number(ahead));
    status.behind = Math.abs(Number(behind));
  }
}

/** The two letters of state after the first field, and the path after so many fields. */
function splitEntry(entry: string, fields: number): { state: string; path: string } {
  const parts = entry.split(" ");
  return { state: parts[1] ?? "", path: parts.slice(fields).join(" ") };
}

function takeChange(status: Status, state: string, path: string): void {
  const [staged = ".", unstaged = "."] = state;
  if (staged !== ".") status.staged.push(`${staged} ${path}`);
  if (unstaged !== ".") status.unstaged.push(`${unstaged} ${path}`);
}

/** A status in words. `doing`: what is under way, such as a merge. */
export function statusText(status: Status, doing: readonly string[]): string {
  const { branch, commit, upstream, ahead, behind } = status;
  const where =
    branch === undefined
      ? `HEAD is detached at ${commit ?? "nothing"}.`
      : `On branch ${listedName(branch)}${commit === undefined ? ", which has no commit yet" : ` at ${commit}`}.`;
  const tracked =
    upstream === undefined ? [] : [`Of ${listedName(upstream)}: ${ahead} ahead, ${behind} behind.`];
  const lists: [string, readonly string[]][] = [
    ["Conflicts", status.conflicts],
    ["Staged", status.staged],
    ["Not staged", status.unstaged],
    ["Untracked", status.untracked],
  ];
  const lines = [where, ...tracked, ...doing.map((what) => `Under way: ${what}.`)];
  let room = MAX_STATUS_ENTRIES;
  let left = 0;
  for (const [title, entries] of lists) {
    if (entries.length === 0) continue;
    const shown = entries.slice(0, room);
    room -= shown.length;
    left += entries.length - shown.length;
    lines.push(`${title} (${entries.length}):`, ...shown.map((entry) => `  ${entry}`));
  }
  if (lists.every(([, entries]) => entries.length === 0)) lines.push("Nothing has changed.");
  if (left > 0) lines.push(`[${grouped(left)} more not shown. Name paths to see them.]`);
  return lines.join("\n");
}

/** Between the fields of one entry of a log, and the format that makes them. */
export const LOG_FORMAT = "--format=%h%x1f%ad%x1f%an%x1f%D%x1f%s";

/** Takes apart what `log -z` gives in this format: one line for each commit. */
export function logLines(output: string): string[] {
  return output
    .split("\0")
    .filter((entry) => entry !== "")
    .map((entry) => {
      const [id = "", date = "", author = "", refs = "", subject = ""] = entry.split("\x1f");
      return `${id} ${date} ${listedName(author)}${refs === "" ? "" : ` (${listedName(refs)})`}: ${listedName(subject)}`;
    });
}

/** Takes apart what `blame --porcelain` gives: each line with its commit, date and author. */
export function blameLines(output: string): string[] {
  const commits = new Map<string, { author: string; date: string }>();
  const lines: string[] = [];
  let id = "";
  let number = "";
  for (const line of output.split("\n")) {
    if (line.startsWith("\t")) {
      const { author = "", date = "" } = commits.get(id) ?? {};
      lines.push(
        `${id.slice(0, SHORT_ID)} ${date} ${listedName(author)} ${number}: ${line.slice(1)}`,
      );
      continue;
    }
    const header = /^([0-9a-f]{40,64}) \d+ (\d+)/.exec(line);
    if (header) {
      [, id = "", number = ""] = header;
      if (!commits.has(id)) commits.set(id, { author: "", date: "" });
    }
    const commit = commits.get(id);
    if (commit && line.startsWith("author ")) commit.author = line.slice("author ".length);
    if (commit && line.startsWith("author-time ")) {
      commit.date = formatDay(Number(line.slice("author-time ".length)));
    }
  }
  return lines;
}

function formatDay(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, "2000-01-01".length);
}
