import { toUrl } from "@gyre/ai";
import { escapePattern } from "./escape-pattern.ts";

const ADDRESS = /^([^:]+):\/\/([^/?#]*)(.*)$/s;
const HOST = /^(?:\*\.)?[a-z0-9.-]+(?::\d+)?$|^\[[0-9a-f:.]+\](?::\d+)?$/i;
/** A path may be encoded again and again; a server that decodes more often than this is not known. */
const MAX_DECODINGS = 4;
const HEX = 16;

/**
 * What matches an address, or what is wrong with the pattern. The host is compared as a whole; `*` is
 * one part of a path, `**` any. A rule that allows takes no query unless it names one. One that
 * forbids holds for all that a server may take for the same: each port unless it names one, a dot behind
 * the host, letters of another case, and what is written with percent signs.
 */
export function createAddressMatcher(
  pattern: string,
  { forbids }: { forbids: boolean },
): ((url: string) => boolean) | string {
  const [, scheme = "", host = "", path = ""] = ADDRESS.exec(pattern) ?? [];
  const ofHost = HOST.test(host) ? createHostMatcher(scheme, host, forbids) : undefined;
  if (!ofHost) return `"${host}" is not a host. Write it whole, or as *.example.org.`;
  const written = path || "/**";
  const flags = forbids ? "i" : "";
  const patterns = forbids ? [...new Set([written, ...decodeFully(written)])] : [written];
  const inPath = patterns.map((each) => createPathPattern(each, flags));
  const matchesPath = (text: string): boolean => inPath.some((each) => each.test(text));
  const takesQuery = forbids || path.includes("?");
  return (text) => {
    const url = toUrl(text);
    if (url?.protocol !== `${scheme.toLowerCase()}:` || !ofHost(url)) return false;
    if (url.username !== "" || url.password !== "") return forbids;
    if (leadsUp(url.pathname)) return forbids;
    if (!takesQuery) return url.search === "" && url.hash === "" && matchesPath(url.pathname);
    const paths = forbids ? listForms(url.pathname) : [url.pathname];
    return paths.some((each) => matchesPath(each) || matchesPath(each + url.search));
  };
}

/** Nothing where the text is no host: what a URL makes of it is what is compared. */
function createHostMatcher(
  scheme: string,
  text: string,
  forbids: boolean,
): ((url: URL) => boolean) | undefined {
  const isSuffix = text.startsWith("*.");
  const address = `${scheme}://${isSuffix ? text.slice(2) : text}/`;
  const wanted = toUrl(address);
  if (!wanted) return undefined;
  const name = plainHost(wanted, forbids);
  return (url) => {
    // The port that a scheme has by itself is not written: a rule without one may mean that alone.
    if (url.port !== wanted.port && !(forbids && !/:\d+$/.test(text))) return false;
    const given = plainHost(url, forbids);
    return isSuffix ? given.endsWith(`.${name}`) : given === name;
  };
}

/** A name with a dot at its end is looked up as the same name. */
function plainHost({ hostname }: URL, forbids: boolean): string {
  const plain = hostname.toLowerCase();
  return forbids ? plain.replace(/\.$/, "") : plain;
}

function createPathPattern(path: string, flags: string): RegExp {
  const parts = path
    .split(/(\*\*|\*)/)
    .map((piece) => (piece === "**" ? "[^]*" : piece === "*" ? "[^/]*" : escapePattern(piece)));
  return new RegExp(`^${parts.join("")}$`, flags);
}

/** A path as it is, and as servers may read it: decoded, without parameters and doubled slashes. */
function listForms(path: string): string[] {
  const forms = [path, ...decodeFully(path)];
  const plain = forms.map((each) =>
    each
      .replaceAll("\\", "/")
      .replaceAll(/;[^/]*/g, "")
      .replaceAll(/\/{2,}/g, "/"),
  );
  return [...forms, ...plain];
}

/** Decoded once, twice, and so on. */
function decodeFully(text: string): string[] {
  const forms: string[] = [];
  for (let form = text; forms.length < MAX_DECODINGS;) {
    const next = decodeOnce(form);
    if (next === form) break;
    forms.push(next);
    form = next;
  }
  return forms;
}

function decodeOnce(text: string): string {
  const bytes = Buffer.from(text)
    .toString("latin1")
    .replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCodePoint(Number.parseInt(hex, HEX)),
    );
  return Buffer.from(bytes, "latin1").toString();
}

/** Whether a server that decodes a path, or drops parameters of its parts, may find `..` in it. */
function leadsUp(path: string): boolean {
  const plain = path
    .replace(/%(?:25)*2e/gi, ".")
    .replace(/%(?:25)*(?:2f|5c)/gi, "/")
    .replace(/%(?:25)*3b/gi, ";");
  return /\/\.{1,2}(?:[/;%]|$)/.test(plain);
}
