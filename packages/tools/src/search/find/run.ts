import { lstatSync } from "node:fs";
import type { AgentToolResult } from "@gyre/agent";
import { limitPage, type ToolEnv } from "../../contract/env.ts";
import {
  FIND_MAX_BYTES,
  FIND_MAX_DATED,
  FIND_MAX_LIMIT,
  type FindDetails,
  type FindToolOptions,
} from "./tool.ts";
import { type Glob, parseGlob } from "../../workspace/globs.ts";
import { pathIn } from "../../workspace/ignore-files.ts";
import { counted, grouped, textResult } from "../../text/text.ts";
import { linesWithin, listedName } from "../../text/truncate.ts";
import { MAX_WALK_ENTRIES, walk, type WalkedEntry } from "../../workspace/walk.ts";
import { Slices } from "../../workspace/slices.ts";
import { PathError } from "../../workspace/workspace.ts";

const NS_PER_MS = 1e6;

/** Looks for what matches and answers as the tool does. */
export async function findFiles(
  env: ToolEnv,
  query: { pattern: string; path: string; limit: number },
  options: FindToolOptions,
  signal: AbortSignal,
): Promise<AgentToolResult> {
  const { pattern, limit } = query;
  const { maxEntries = MAX_WALK_ENTRIES } = options;
  const glob = parseGlob(pattern, env.workspace.root);
  const { path } = await env.workspace.resolve(query.path, { outside: true });
  const { files, folders, stopped } = await search(env, glob, path, maxEntries, signal);
  const wanted = glob.foldersOnly || files.length === 0 ? folders : files;
  const found = wanted.length;
  const newest = await findNewest(env, wanted, limit, signal);
  const shown = linesWithin(newest, limitPage(env, FIND_MAX_BYTES));
  const notes: string[] = [];
  if (shown.length < found) {
    const more = shown.length === limit && limit < FIND_MAX_LIMIT ? ", or a larger limit," : "";
    notes.push(
      `${shown.length} of ${grouped(found)} matches shown. ` +
        `Use a narrower pattern or path${more} to see the others.`,
    );
  }
  if (found > FIND_MAX_DATED) {
    notes.push(`Too many to sort by age: only the first ${FIND_MAX_DATED} were.`);
  }
  if (stopped) {
    notes.push(
      `Stopped after ${counted(maxEntries, "file")}: not all was looked at. ` +
        "Give a path to look in.",
    );
  }
  const none = `Nothing matches ${JSON.stringify(pattern)} in ${listedName(path || ".")}.`;
  const hint = pattern.includes("[") ? " A bracket itself is written as \\[." : "";
  const text = found === 0 ? none + hint : shown.join("\n");
  const details: FindDetails = {
    pattern,
    path,
    shown: shown.length,
    found,
    stopped,
  };
  return textResult(notes.length > 0 ? `${text}\n\n[${notes.join(" ")}]` : text, details);
}

interface Found {
  files: WalkedEntry[];
  folders: WalkedEntry[];
  stopped: boolean;
}

async function search(
  env: ToolEnv,
  glob: Glob,
  folder: string,
  maxEntries: number,
  signal: AbortSignal,
): Promise<Found> {
  const found: Found = { files: [], folders: [], stopped: false };
  // What the pattern names before its first wildcard need not be searched for.
  const named = glob.base === "" ? folder : pathIn(folder, glob.base);
  const { path: start } = await env.workspace.resolve(named || ".", { outside: true });
  // Throws for a folder that is missing, with near names, and a file that is given as folder.
  await env.workspace.list(named || ".");
  const walked = walk(env.workspace, start, { signal, maxEntries });
  for await (const entries of walked) {
    // Links on the way to the base were followed; the pattern speaks of the way as written.
    const paths = entries.map(({ path }) =>
      pathIn(glob.base, start === "" ? path : path.slice(start.length + 1)),
    );
    glob.filter(paths).forEach((matches, index) => {
      const entry = entries[index];
      if (!matches || !entry) return;
      (entry.kind === "folder" ? found.folders : found.files).push(entry);
    });
  }
  found.stopped = walked.stopped;
  return found;
}

/** The newest of them, the newest first, as they are listed. */
async function findNewest(
  env: ToolEnv,
  entries: readonly WalkedEntry[],
  limit: number,
  signal: AbortSignal,
): Promise<string[]> {
  const dated = entries.slice(0, FIND_MAX_DATED);
  const times = new Float64Array(dated.length);
  const slices = new Slices();
  for (const [index, { path, kind }] of dated.entries()) {
    times[index] = kind === "link" ? await targetTime(env, path) : ownTime(env, path);
    if (!slices.isDue) continue;
    await slices.pause();
    signal.throwIfAborted();
  }
  const least = times.toSorted().at(-limit) ?? 0;
  const newest = dated.flatMap(({ path, kind }, index) => {
    const time = times[index] ?? 0;
    return time < least ? [] : [{ path: kind === "folder" ? `${path}/` : path, time }];
  });
  // The order of the walk stays where the times are the same.
  newest.sort((a, b) => b.time - a.time);
  return newest.slice(0, limit).map(({ path }) => listedName(path));
}

/** When something that is no link was changed; long ago for what went away. */
function ownTime(env: ToolEnv, path: string): number {
  try {
    const at = `${env.workspace.root}/${path}`;
    return lstatSync(at, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  } catch {
    // Another program has put a file in the place of a folder, or has closed one.
    return 0;
  }
}

/** When what a link leads to was changed; long ago where that is gone or outside. */
async function targetTime(env: ToolEnv, path: string): Promise<number> {
  try {
    const { mtimeNs } = await env.workspace.stat(`./${path}`);
    return Number(mtimeNs) / NS_PER_MS;
  } catch (error) {
    if (error instanceof PathError) return 0;
    throw error;
  }
}
