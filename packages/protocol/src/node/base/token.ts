import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { constants, mkdir, open, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";

const TOKEN_BYTES = 32;
/** The least length of a token that was written by hand. */
const MIN_TOKEN_CHARS = 16;
/** A longer file does not hold a token. */
const MAX_TOKEN_CHARS = 4096;
const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;
/** The bits of a mode that give access to other users. */
const OTHERS = 0o077;
/** The characters that a header and a subprotocol can carry. */
const PRINTABLE = /^[\x21-\x7e]+$/;

/** A new token: 32 random bytes as base64url. */
export function makeToken(): string {
  return randomBytes(TOKEN_BYTES).toString("base64url");
}

/**
 * Creates the check for a token, which takes as long for a wrong one as for the right one. Throws
 * on a token that is too short or cannot be sent in a header.
 */
export function createTokenCheck(token: string): (given: string) => boolean {
  const problem = findProblem(token);
  if (problem) throw new Error(`The token ${problem}.`);
  // Digests have one length, so the comparison does not reveal that of the token.
  const wanted = digest(token);
  return (given) => timingSafeEqual(digest(given), wanted);
}

/**
 * Reads the token of a file, or makes one if the file is missing, with access for its owner alone.
 * Throws where others have access to it (Windows has no such modes), or it holds no token.
 */
export async function readOrMakeToken(file: string): Promise<{ token: string; isNew: boolean }> {
  await mkdir(dirname(file), { recursive: true, mode: OWNER_ONLY_FOLDER });
  const made = await openNew(file);
  if (made) {
    const token = makeToken();
    try {
      await made.writeFile(`${token}\n`);
    } finally {
      await made.close();
    }
    return { token, isNew: true };
  }
  const handle = await openThere(file);
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new Error(`${file} is not a file that can hold a token.`);
    if (process.platform !== "win32" && (stat.mode & OTHERS) !== 0) {
      throw new Error(
        `Others have access to ${file}. Make a new token: remove the file. To keep it: chmod 600.`,
      );
    }
    const token = stat.size > MAX_TOKEN_CHARS ? "" : (await handle.readFile("utf8")).trim();
    const problem = findProblem(token);
    if (problem) throw new Error(`The token in ${file} ${problem}. Remove the file for a new one.`);
    return { token, isNew: false };
  } finally {
    await handle.close();
  }
}

/** Opens a file that exists. A pipe without a writer would not be opened before one comes. */
async function openThere(file: string): Promise<FileHandle> {
  try {
    return await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || error.code !== "ENOENT") throw error;
    throw new Error(`${file} is a link to nothing. Remove it for a new token.`, { cause: error });
  }
}

/** Creates a file; undefined if it exists. Two servers that start at once do not overwrite each other. */
async function openNew(file: string): Promise<FileHandle | undefined> {
  try {
    return await open(file, "wx", OWNER_ONLY);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return undefined;
    throw error;
  }
}

function findProblem(token: string): string | undefined {
  if (token.length < MIN_TOKEN_CHARS) return `has less than ${MIN_TOKEN_CHARS} characters`;
  if (token.length > MAX_TOKEN_CHARS) return `has more than ${MAX_TOKEN_CHARS} characters`;
  if (!PRINTABLE.test(token)) return "has characters that a header cannot carry";
  return undefined;
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
