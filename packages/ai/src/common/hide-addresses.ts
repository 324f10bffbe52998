import { toUrl } from "./to-url.ts";
/** What stands where an address stood. */
const HIDDEN = "[address]";

/** A piece of a text that an address could be: no space, quote or parenthesis. */
const PIECE = /[^\s"'`<>()]+/g;
/** What ends a sentence is not a part of the address before it. */
const SENTENCE_END = ".,;:!?…";
const IP_ADDRESS = /(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w)|(?:[0-9a-f]{0,4}:){3}/i;
const NAME_CHAR = /[a-z0-9.-]/;

/**
 * The text with `[address]` for each of the addresses, whole or its host alone, and for all IP
 * addresses: a system error may name the one that a host stands for. Takes time in proportion to
 * the text.
 */
export function hideAddresses(text: string, addresses: readonly string[]): string {
  const names = new Set(addresses.flatMap(listNames));
  return text.replace(PIECE, (piece) => {
    let end = piece.length;
    while (SENTENCE_END.includes(piece[end - 1] ?? " ")) end--;
    const place = piece.slice(0, end);
    const isAddress = IP_ADDRESS.test(place) || [...names].some((name) => hasName(place, name));
    return isAddress ? HIDDEN + piece.slice(end) : piece;
  });
}

/** The host of an address; all of it where there is no host in it. */
function listNames(address: string): string[] {
  const host = toUrl(address)?.hostname ?? "";
  const name = (host || address).trim().toLowerCase();
  return name === "" ? [] : [name];
}

/** Whether a name stands in a piece of text, and is not a part of a longer one. */
function hasName(piece: string, name: string): boolean {
  const text = piece.toLowerCase();
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const before = text[at - 1] ?? "";
    const after = text[at + name.length] ?? "";
    if (!NAME_CHAR.test(before) && !NAME_CHAR.test(after)) return true;
  }
  return false;
}
