import { lstat, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** In the folder of a rebase: what is still to be done. */
export const TODO = "git-rebase-todo";
const MAX_TODO_BYTES = 16 * 1024 * 1024;
/** A line by which git runs a program. */
const EXEC = /^[ \t]*(?:exec|x)(?:[ \t\r].*)?$/s;

/** Whether what is still to be done in a rebase has git run a program. */
export function hasExecLines(todo: string): boolean {
  return todo.split("\n").some((line) => EXEC.test(line));
}

/**
 * Takes the lines that run a program out of a copy of a rebase: the user would continue it outside
 * of the sandbox. Gives whether there were any.
 */
export async function removeExecLines(folder: string): Promise<boolean> {
  const path = join(folder, TODO);
  const stats = await lstat(path).catch(() => undefined);
  if (stats === undefined) return false;
  if (stats.size > MAX_TODO_BYTES) throw new Error(`${TODO} is too large.`);
  const text = await readFile(path, "latin1");
  if (!hasExecLines(text)) return false;
  const kept = text.split("\n").filter((line) => !EXEC.test(line));
  await writeFile(path, kept.join("\n"), "latin1");
  return true;
}
