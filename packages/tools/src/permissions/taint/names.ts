import { isIPv4, isIPv6 } from "node:net";
import { posix } from "node:path";

/** Longer words are data and no names. */
const MAX_NAME_CHARS = 2_000;
const MIN_NAME_CHARS = 2;
/** A text may be encoded again and again. */
const MAX_DECODINGS = 4;

/** What is between the signs that text, Markdown, code and JSON put around a name. */
const WORD = /[^\s"'`<>()[\]{},;|\\^*]+/g;
/** Signs of a sentence or an assignment at either end of a word. */
const BEFORE = ":!?=#&";
const BEHIND = ".:!?=#&";
/** `git@host:path`. */
const SCP = /^[\w.-]+@([^\s:/@]+):(?!\/\/)(.*)$/;
const LOCAL = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|0\.0\.0\.0|::1?)$/;
/** What package managers take behind the name of a package. */
const VERSION = /^(@?[^@=<>~!^]+?)(?:@[^/@]*|(?:==|>=|<=|~=|!=|[<>^~]).*)$/;

/** An address in one way of writing: without scheme, user, port, query, case of the host and signs for the same path. */
export interface Address {
  host: string;
  /** Host and path, where there is a path. */
  place?: string;
}

/** The key of a host. */
export const hostKey = (host: string): string => `host ${host}`;
/** The key of a host with a path. */
export const placeKey = (place: string): string => `place ${place}`;
/** The key of a path, a package or another word. */
export const nameKey = (name: string): string => `name ${name}`;

/** Calls `take` with a key for each name in a text, in time that grows with its length. */
export function takeNames(text: string, take: (key: string) => void): void {
  for (const word of listWords(text)) {
    const name = normalizeName(word);
    take(nameKey(name));
    const plain = stripVersion(name);
    if (plain !== name) take(nameKey(plain));
    const address = parseAddress(word);
    if (!address) continue;
    take(hostKey(address.host));
    if (address.place !== undefined) take(placeKey(address.place));
  }
}

/** The addresses in a text. */
export function listAddresses(text: string): Address[] {
  const found = new Map<string, Address>();
  for (const word of listWords(text)) {
    const address = parseAddress(word);
    if (address) found.set(address.place ?? address.host, address);
  }
  return [...found.values()];
}

function* listWords(text: string): Generator<string> {
  // JSON may have a sign before each slash.
  for (const [written] of text.replaceAll("\\/", "/").matchAll(WORD)) {
    if (written.length > MAX_NAME_CHARS) continue;
    for (const word of splitValue(trimWord(written))) {
      if (word.length >= MIN_NAME_CHARS) yield word;
    }
  }
}

function trimWord(word: string): string {
  let start = 0;
  let end = word.length;
  while (start < end && BEFORE.includes(word.charAt(start))) start++;
  while (end > start && BEHIND.includes(word.charAt(end - 1))) end--;
  return word.slice(start, end);
}

/** `registry=https://a.example` is a word, and names what is behind the sign. */
function splitValue(word: string): readonly string[] {
  const sign = word.indexOf("=");
  return sign < 0 ? [word] : [word, word.slice(sign + 1)];
}

/** A path in one way of writing; any other word is as it is. */
export function normalizeName(written: string): string {
  const word = written.replace(/^\$HOME(?=\/|$)/, "~");
  if (!/[%/]/.test(word)) return word;
  const decoded = decodeFully(word);
  const path = posix.normalize(decoded);
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

/** `left-pad@1.3.0`, `requests>=2`: the name of the package alone. */
export function stripVersion(name: string): string {
  if (!/[@=<>~!^[]/.test(name)) return name;
  const [, plain = name] = VERSION.exec(name) ?? [];
  return plain.replace(/\[[^\]]*\]?$/, "");
}

/** The address that a word is, if it may be one. Those of this machine are none. */
export function parseAddress(word: string): Address | undefined {
  // Most words have none of these.
  if (!/[.:%]/.test(word) && !word.startsWith("//")) return undefined;
  const rest = findRest(word);
  if (rest === undefined || !URL.canParse(`http://${rest}`)) return undefined;
  const { hostname, pathname } = new URL(`http://${rest}`);
  const host = hostname.replace(/^\[|\]$|\.$/g, "");
  if (host === "" || LOCAL.test(host)) return undefined;
  const path = normalizeName(pathname).replace(/\.git$/, "");
  return path === "/" ? { host } : { host, place: host + path };
}

/** What is behind a scheme, or would be. */
function findRest(word: string): string | undefined {
  const scheme = word.indexOf("://");
  if (scheme > 0) return word.slice(scheme + "://".length);
  if (word.startsWith("//")) return word.slice(2);
  const [, server, path = ""] = word.includes("@") ? (SCP.exec(word) ?? []) : [];
  if (server !== undefined) return `${server}/${path}`;
  if (word.includes(":") && isIPv6(word)) return `[${word}]`;
  const end = word.search(/[/?#]/);
  const place = end < 0 ? word : word.slice(0, end);
  const host = place.slice(place.lastIndexOf("@") + 1).replace(/:\d+$/, "");
  // Without a scheme, 1.2.3 is a version.
  if (/^[\d.]+$/.test(host) && !isIPv4(host)) return undefined;
  return host.search(/\.|%2e/i) > 0 ? word : undefined;
}

function decodeFully(text: string): string {
  let form = text;
  for (let times = 0; times < MAX_DECODINGS && form.includes("%"); times++) {
    const next = form.replaceAll(/(?:%[0-9a-f]{2})+/gi, (bytes) =>
      Buffer.from(bytes.replaceAll("%", ""), "hex").toString("utf8"),
    );
    if (next === form) break;
    form = next;
  }
  return form;
}
