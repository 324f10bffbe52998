import { randomUUID } from "node:crypto";
import {
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { errorMessage } from "@gyre/ai";

/** Settings may have keys in them. */
const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;
const FILE_MODE = 0o777;
const DEFAULT_INDENT = 2;

/** The text of a JSON file and its value; `{}` where it is not there. Throws an error for people. */
export function readJsonFile(path: string): { text: string; value: unknown } {
  if (!statSync(path, { throwIfNoEntry: false })) return { text: "", value: {} };
  const text = readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  try {
    const value: unknown = JSON.parse(text);
    return { text, value };
  } catch (error) {
    // The words of that error quote the file.
    throw new Error(`${path} is not JSON: fix it first.`, { cause: error });
  }
}

/** Writes a value in one step, with the indentation of the text before, the rights and the link that the file has. */
export function writeJsonFile(path: string, before: string, value: unknown): void {
  const indent = /^[ \t]+/m.exec(before)?.[0] ?? DEFAULT_INDENT;
  const target = findTarget(path);
  const draft = `${target}.${randomUUID()}.tmp`;
  try {
    mkdirSync(dirname(target), { recursive: true, mode: OWNER_ONLY_FOLDER });
    const mode = statSync(target, { throwIfNoEntry: false })?.mode ?? OWNER_ONLY;
    const content = `${JSON.stringify(value, undefined, indent)}\n`;
    writeFileSync(draft, content, { flag: "wx", mode: mode & FILE_MODE });
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new Error(`${path} cannot be written: ${errorMessage(error)}`, { cause: error });
  }
}

function findTarget(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // It is not there yet.
    return path;
  }
}
