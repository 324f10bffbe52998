import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";

/** A folder for the tests of a file; each call gives a new path in it. */
export function temporaryPaths(name: string): () => string {
  let home = "";
  let count = 0;
  beforeAll(async () => {
    home = await mkdtemp(join(await realpath(tmpdir()), `gyre-${name}-`));
  });
  afterAll(() => rm(home, { recursive: true, force: true }));
  return () => join(home, `s${++count}_id${count}.jsonl`);
}
