import { errnoOf } from "@gyre/ai";

/** A path that leads nowhere: a command that names it finds nothing there either. */
const NOT_THERE = new Set(["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"]);

/** What a look at a path finds; nothing where a part of the path is missing, or is a file where a folder is needed. */
export function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if (NOT_THERE.has(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}
