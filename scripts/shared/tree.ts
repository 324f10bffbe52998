import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** Files by path; what is no string is written as JSON. */
export type Tree = Readonly<Record<string, unknown>>;

/** Writes a tree of files for the running test, which takes it away at its end. */
export function plant(tree: Tree): string {
  const root = mkdtempSync(join(realpathSync(tmpdir()), "gyre-tree-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(tree)) {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  }
  return root;
}
