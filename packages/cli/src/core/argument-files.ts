import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { errorMessage, type UserContent } from "@gyre/ai";
import { fromSource } from "@gyre/tools";
import { UsageError } from "./exit-codes.ts";

/** Of one file. A longer one is for the model to read in parts. */
const MAX_FILE_BYTES = 1024 * 1024;
const PICTURES: ReadonlyMap<string, string> = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["gif", "image/gif"],
  ["webp", "image/webp"],
]);

/** What the arguments ask, and the files that they name as `@FILE`. */
export interface ArgumentFiles {
  words: readonly string[];
  files: readonly UserContent[];
}

/** Reads the files that are named as `@FILE`, each an argument of its own. Throws `UsageError`. */
export function readArgumentFiles(args: readonly string[], cwd: string): ArgumentFiles {
  const isFile = (word: string): boolean => /^@\S/.test(word);
  return {
    words: args.filter((word) => !isFile(word)),
    files: args.filter(isFile).map((word) => readNamed(word, resolve(cwd, word.slice(1)))),
  };
}

function readNamed(word: string, path: string): UserContent {
  const ending = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  const mimeType = PICTURES.get(ending);
  const content = readWhole(word, path, mimeType === undefined);
  if (mimeType !== undefined) return { type: "image", data: content.toString("base64"), mimeType };
  return fromSource({ kind: "file", name: word.slice(1) }, content.toString("utf8"));
}

function readWhole(word: string, path: string, isText: boolean): Buffer {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) throw new UsageError(`${word}: this is not a file.`);
    if (stats.size > MAX_FILE_BYTES && isText) {
      throw new UsageError(`${word}: the file is larger than 1 MB. Name it without the @.`);
    }
    return readFileSync(path);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${word}: ${errorMessage(error)}`, { cause: error });
  }
}
