import { readFileSync } from "node:fs";
import { join } from "node:path";
import { locateRepository } from "@gyre/tools";

const BRANCH = /^ref: refs\/heads\/([\w./+@-]{1,100})\s*$/;
const COMMIT = /^[0-9a-f]{40,64}\s*$/;
const SHORT_COMMIT = 7;

/** The branch that a folder is on, or the commit; nothing outside of a repository. */
export function readBranch(folder: string): string | undefined {
  try {
    const place = locateRepository(folder);
    if (!place) return undefined;
    const head = readFileSync(join(place.folder, "HEAD"), "utf8");
    return BRANCH.exec(head)?.[1] ?? (COMMIT.test(head) ? head.slice(0, SHORT_COMMIT) : undefined);
  } catch {
    // A repository that cannot be read has no branch to show.
    return undefined;
  }
}
