import { readFileSync } from "node:fs";
import { parseUserModels, type UserModels, UserModelsError } from "../models/user-models.ts";
import { PartialJsonParser } from "../partial-json.ts";

/**
 * A user's own models and services, as `parseUserModels` reads them, from a file. A
 * file that is missing has none. Throws `UserModelsError` with the path, and for what
 * is no JSON with the place; and what the file system throws where it cannot be read.
 */
export function loadUserModels(path: string): UserModels {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") {
      return { source: path, models: [], services: {} };
    }
    throw error;
  }
  return parseUserModels(parsed(text.replace(/^\uFEFF/, ""), path), path);
}

/** Our own parser tells the place on every engine, and shows nothing of a file that may hold keys. */
function parsed(text: string, path: string): unknown {
  const parser = new PartialJsonParser();
  parser.feed(text);
  const end = parser.end();
  if (end.ok) return end.value;
  const before = text.slice(0, end.position).split("\n");
  const column = (before.at(-1)?.length ?? 0) + 1;
  throw new UserModelsError(path, [
    `no JSON at line ${before.length}, column ${column}: ${end.error}`,
  ]);
}
