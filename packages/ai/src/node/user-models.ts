import { readFileSync } from "node:fs";
import { parseUserModels, type UserModels, UserModelsError } from "../models/user-models.ts";
import { parseJsonText } from "../stream/partial-json.ts";

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
  return parseUserModels(parsed(text, path), path);
}

function parsed(text: string, path: string): unknown {
  const result = parseJsonText(text);
  if (result.ok) return result.value;
  const { line, column, error } = result;
  throw new UserModelsError(path, [`invalid JSON at line ${line}, column ${column}: ${error}`]);
}
