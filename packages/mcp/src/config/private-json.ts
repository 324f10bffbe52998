import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { errnoOf, errorMessage } from "@gyre/ai";

const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;
const INDENT = 1;

/** The value of a JSON file; undefined where there is no such file. Throws with what to do about it. */
export function readPrivateJson(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw new Error(`${path} cannot be read: ${errorMessage(error)}`, { cause: error });
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    // The words of that error quote the file.
    throw new Error(`${path} is broken: fix or remove it.`, { cause: error });
  }
}

/** Writes a JSON file, its owner's alone, in one step: readers get the old or the new one. */
export function writePrivateJson(path: string, value: unknown): void {
  const draft = `${path}.${randomUUID()}.tmp`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: OWNER_ONLY_FOLDER });
    const text = `${JSON.stringify(value, undefined, INDENT)}\n`;
    writeFileSync(draft, text, { flag: "wx", mode: OWNER_ONLY });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new Error(`${path} cannot be written: ${errorMessage(error)}`, { cause: error });
  }
}
