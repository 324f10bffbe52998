import { join } from "node:path";
import type { Word } from "../command/parse.ts";
import type { Drafts } from "../follow/drafts.ts";
import { type Ground, isOutside } from "./outside.ts";
import { listEntries } from "../follow/search.ts";

/** Entries of folders that are looked at before a person is asked. */
const MAX_ENTRIES = 20_000;

/** With which options programs go through folders and follow the links in them. */
const FOLLOWS: ReadonlyMap<string, RegExp> = new Map([
  ["find", /^-(?:L|follow)$/],
  ...["grep", "egrep", "fgrep"].map((name): [string, RegExp] => [name, /^-\w*R|^--deref/]),
  ["rg", /^-\w*L|^--fol/],
  ["ag", /^-\w*f|^--fol/],
  ["fd", /^-\w*L|^--fol/],
  ["tree", /^-\w*l/],
  ["du", /^-\w*L|^--deref/],
  ["ls", /^-\w*(?:L\w*R|R\w*L)/],
  ["cp", /^-\w*[LH]|^--deref/],
  ["rsync", /^-\w*[Lk]|^--copy-(?:unsafe-)?links|^--copy-dirlinks/],
  ["tar", /^-?\w*h|^--deref/],
  ["zip", /^-\w*r|^--rec/],
  ["diff", /^-\w*r|^--rec/],
  ["chmod", /^-\w*L/],
  ["chown", /^-\w*L/],
]);

interface Place extends Ground {
  /** The real path of the workspace. */
  root: string;
  drafts: Drafts;
}

/** Take a pattern before the folders. */
const SEARCHES = /^(?:[ef]?grep|rg|ag|fd)$/;

/** Which link below the folders of a command that follows links leads out of the workspace, as a sentence. */
export async function findFollowedLink(
  program: string,
  words: readonly Word[],
  place: Place,
): Promise<string | undefined> {
  const follows = FOLLOWS.get(program);
  if (!follows || !words.some(({ text }) => follows.test(text))) return undefined;
  const named = words.filter(({ text, literal }) => literal && !text.startsWith("-"));
  const waiting = named.map(({ text }) => text);
  const least = SEARCHES.test(program) ? 2 : 1;
  if (words.some(({ literal }) => !literal) || waiting.length < least) waiting.push(".");
  // A link that the line itself makes.
  const here = join(place.root, place.cwd);
  for (const folder of [...waiting]) {
    const path = folder.startsWith("/") ? folder : join(here, folder);
    waiting.push(...place.drafts.listSources(path, ["linked"]).slice(1));
  }
  const seen = new Set<string>();
  let left = MAX_ENTRIES;
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    if (seen.has(folder)) continue;
    seen.add(folder);
    const target = folder.startsWith("/") ? folder : join(place.root, place.cwd, folder);
    for (const entry of listEntries(target)) {
      if (--left < 0) return `not all in "${folder}" were looked at.`;
      const path = join(folder, entry.name);
      if (entry.isSymbolicLink()) {
        if (await isOutside(path, place)) return `"${path}" is outside of the workspace.`;
      } else if (entry.isDirectory() && entry.name !== ".git") waiting.push(path);
    }
  }
  return undefined;
}
