import { readFileSync, statSync } from "node:fs";
import { basename, resolve } from "node:path";
import { errorMessage, fileKind, guessMediaType, type UserContent } from "@gyre/ai";
import { fromSource } from "@gyre/tools";
import { UsageError } from "./exit-codes.ts";

/** Of one text. A longer one is for the model to read in parts. */
const MAX_TEXT_BYTES = 1024 * 1024;
/** Of any other file: what services take at most. */
const MAX_FILE_BYTES = 50 * 1024 * 1024;
/** Pictures that every service takes are images, as those of tools are. */
const PICTURES: ReadonlySet<string | undefined> = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
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
  const mediaType = guessMediaType(path);
  const isText = mediaType === undefined || fileKind(mediaType) === "text";
  const content = readWhole(word, path, isText);
  if (isText) return fromSource({ kind: "file", name: word.slice(1) }, content.toString("utf8"));
  const data = content.toString("base64");
  if (PICTURES.has(mediaType)) return { type: "image", data, mimeType: mediaType };
  return { type: "file", mediaType, name: basename(path), source: { type: "base64", data } };
}

function readWhole(word: string, path: string, isText: boolean): Buffer {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) throw new UsageError(`${word}: this is not a file.`);
    if (stats.size > MAX_TEXT_BYTES && isText) {
      throw new UsageError(`${word}: the file is larger than 1 MB. Name it without the @.`);
    }
    if (stats.size > MAX_FILE_BYTES) {
      throw new UsageError(`${word}: the file is larger than 50 MB, which no service takes.`);
    }
    return readFileSync(path);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${word}: ${errorMessage(error)}`, { cause: error });
  }
}
