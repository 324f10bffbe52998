import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { guessMediaType, type UserContent } from "@gyre/ai";

/** What services take. */
export const MAX_IMAGE_BYTES: number = 5 * 1024 * 1024;
const MAX_FILE_BYTES: number = 50 * 1024 * 1024;
const MAX_FILES = 10;
/** Files that a prompt may name are found by how their names end. */
const END =
  "\\.(?:png|jpe?g|gif|webp|pdf|wav|mp3|m4a|aac|ogg|flac|mp4|mov|mkv|webm|docx?|xlsx?|pptx?)";
const PICTURE = /\.(?:png|jpe?g|gif|webp)$/i;
/** A path that ends so: quoted, with spaces escaped, or a `file:` address. */
const PATHS = new RegExp(
  `(@?)(?:"([^"\\n]+${END})"|'([^'\\n]+${END})'|((?:\\\\.|[^\\s"'\\\\])+${END})(?=$|[\\s.,;:!?)]))`,
  "gi",
);

export interface FoundFiles {
  files: UserContent[];
  /** Why one that is there was not taken. */
  problems: string[];
}

/**
 * The files that a prompt names by their paths: pictures, and others where an `@` is before them. What is no
 * file is left as text.
 */
export async function filesIn(text: string, cwd: string): Promise<FoundFiles> {
  const found: FoundFiles = { files: [], problems: [] };
  const paths = new Set<string>();
  for (const [, mark, quoted, single, bare = ""] of text.matchAll(PATHS)) {
    const written = quoted ?? single ?? bare.replaceAll(/\\(.)/g, "$1");
    const isMarked = mark === "@" || written.startsWith("@");
    if (!isMarked && !PICTURE.test(written)) continue;
    const path = parsePath(written, cwd);
    if (path !== undefined) paths.add(path);
  }
  for (const path of paths) {
    const info = await stat(path).catch(() => undefined);
    if (!info?.isFile()) continue;
    const isPicture = PICTURE.test(path);
    const most = isPicture ? MAX_IMAGE_BYTES : MAX_FILE_BYTES;
    if (found.files.length >= MAX_FILES) {
      found.problems.push(`${path} is not sent: ${MAX_FILES} files are the most.`);
    } else if (info.size > most) {
      found.problems.push(`${path} is not sent: it is larger than ${most / 1024 / 1024} MB.`);
    } else {
      const data = (await readFile(path)).toString("base64");
      found.files.push(toBlock(path, data, isPicture));
    }
  }
  return found;
}

function toBlock(path: string, data: string, isPicture: boolean): UserContent {
  const mediaType = guessMediaType(path) ?? "image/png";
  if (isPicture) return { type: "image", data, mimeType: mediaType };
  return { type: "file", mediaType, name: basename(path), source: { type: "base64", data } };
}

function parsePath(written: string, cwd: string): string | undefined {
  try {
    if (written.startsWith("file://")) return fileURLToPath(written);
  } catch {
    // No path of this machine.
    return undefined;
  }
  const path = written.replace(/^@/, "");
  return path.startsWith("~/") ? resolve(homedir(), path.slice(2)) : resolve(cwd, path);
}
