import { cp, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import type { ToolEnv } from "./env.ts";

/** Folders that are looked into: some things in them are protected, others not. */
const LOOKED_INTO = ["", ".vscode"];

/**
 * What is there of the protected places at the top of the workspace, which tell agents and
 * editors what to do. A sandbox keeps what is there from being changed, and cannot keep what
 * is missing from being made: so what a command made is put aside when it has ended. A new
 * repository's own files stay: git is to be used.
 */
export async function protectedEntries({ workspace }: ToolEnv): Promise<string[]> {
  const found: string[] = [];
  for (const folder of LOOKED_INTO) {
    const entries = await workspace.list(folder === "" ? "." : folder).catch(() => []);
    for (const { name } of entries) {
      const path = folder === "" ? name : `${folder}/${name}`;
      if (name === ".git") continue;
      const { readOnly } = await workspace.resolve(path, { keepLink: true });
      if (readOnly) found.push(path);
    }
  }
  return found;
}

/** Puts aside what came since `before`; answers what it was and where it is now. */
export async function putAside(
  env: ToolEnv,
  before: readonly string[],
): Promise<{ path: string; now: string }[]> {
  const made = (await protectedEntries(env)).filter((path) => !before.includes(path));
  const moved: { path: string; now: string }[] = [];
  for (const path of made) {
    const from = join(env.workspace.root, path);
    const now = join(env.spoolFolder, `aside-${globalThis.crypto.randomUUID()}-${basename(path)}`);
    try {
      await rename(from, now);
    } catch {
      // On another file system.
      await cp(from, now, { recursive: true, verbatimSymlinks: true });
      await rm(from, { recursive: true, force: true });
    }
    moved.push({ path, now });
  }
  return moved;
}
