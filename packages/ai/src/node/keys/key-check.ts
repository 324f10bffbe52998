/** Tokens that carry claims are long; more than this no server takes in a header. */
const MAX_KEY_CHARS = 16_384;
/** The first and the last of the characters that a header may hold, the space left out. */
const FIRST_VISIBLE = 0x21;
const LAST_VISIBLE = 0x7e;

/**
 * Why this cannot be a key, as the end of a sentence that begins with its place; nothing
 * where it can. Names the position of what is wrong, never the key.
 */
export function keyProblem(key: string): string | undefined {
  if (key.trim() === "") return "is empty";
  if (key.length > MAX_KEY_CHARS) return `is longer than ${MAX_KEY_CHARS} characters`;
  for (let at = 0; at < key.length; at++) {
    const code = key.charCodeAt(at);
    if (code >= FIRST_VISIBLE && code <= LAST_VISIBLE) continue;
    return `contains ${findName(key.charAt(at), code)} at character ${at + 1} of ${key.length}`;
  }
  // Files of variables are read with their quotes by some programs, without them by others.
  if (/^["'`]|["'`]$/.test(key)) return "begins or ends with a quote, which is no part of a key";
  return undefined;
}

function findName(char: string, code: number): string {
  if (char === "\n" || char === "\r") return "a line break";
  if (/\s/.test(char)) return "a space";
  if (code < FIRST_VISIBLE || code === LAST_VISIBLE + 1) return "a control character";
  return "a character that is not ASCII (a pasted quote or dash, perhaps)";
}
