import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder for the tests of a file; each call returns a new path in it. `atEnd` gets the function that removes it. */
export function temporaryPaths(name: string, atEnd: (undo: () => void) => void): () => string {
  const home = mkdtempSync(join(realpathSync(tmpdir()), `gyre-${name}-`));
  atEnd(() => rmSync(home, { recursive: true, force: true }));
  let count = 0;
  return () => join(home, `s${++count}_id${count}.jsonl`);
}
