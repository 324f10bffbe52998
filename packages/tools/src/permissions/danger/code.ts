import { isLocalAddress } from "./network.ts";

/** Run what is written in their arguments, or in what they read. */
const INTERPRETERS =
  /^(?:node|nodejs|bun|deno|tsx|ts-node|python[\d.]*|py|pypy\d*|perl|ruby|php|lua|Rscript|julia|awk|gawk|mawk|nawk)$/;

const ADDRESS = /\b(?:https?|wss?|ftp):\/\/[^\s"'`)]+/gi;
/** Calls by which code reaches an address. */
const CALLS =
  /\b(?:fetch|urlopen|urlretrieve|requests?|httpx|aiohttp|axios|got|get|getprint|open|open_uri|file_get_contents|curl\w*|download|connect|WebSocket)\b|https?\./i;
/** Modules that are for the network alone. */
const MODULES =
  /\burllib\.request\b|\bhttp\.client\b|\b(?:requests|httpx)\.(?:get|post|put|delete|request)\b|\bsocket\.(?:create_connection|getaddrinfo|gethostbyname)|\b(?:smtplib|ftplib|paramiko|telnetlib)\b|["'](?:node:)?(?:https|net|tls|dns|dgram|http2)["']|\bNet::(?:HTTP|FTP|SMTP)|\bLWP\b|\bIO::Socket\b|\bTCPSocket\b|\bp?fsockopen\b|install\.packages|\bPkg\.add\b/;
const SERVES = /createServer|\.listen\(|HTTPServer/;
const HOMES = /\bexpanduser\b|\bPath\.home\b|\bhomedir\(|\bDir\.home\b|(?:\benv\.|["'[])HOME\b/;
const REMOVES =
  /\brmtree\b|\brmSync\b|\brmdirSync\b|\bfs(?:\/promises)?["')]*\.(?:promises\.)?(?:rm|rmdir|unlink)\b|\bunlink(?:Sync)?\b|\brm_rf?\b|\bremove_tree\b|\bos\.(?:remove|removedirs)\b|\bDeno\.remove/;
const STARTS = /\b(?:system|popen|exec\w*|spawn\w*|subprocess|Popen|check_(?:call|output)|run)\b|`/;

/** Whether a program runs code that stands in the command line. */
export function isInterpreter(program: string): boolean {
  return INTERPRETERS.test(program);
}

/** What code in a command line does, as far as its text says so. */
export interface CodeUse {
  needsNetwork: boolean;
  /** It finds the user's own folder. */
  usesHome: boolean;
  /** Texts in it that may be paths. */
  paths: string[];
  /** Of these, what it may remove, and whether that is known. */
  removes: boolean;
  /** Texts in it that may be command lines. */
  commands: string[];
}

export function inspectCode(code: string): CodeUse {
  const addresses = code.match(ADDRESS) ?? [];
  const isRemote = addresses.some((address) => !isLocalAddress(address));
  const texts = [...code.matchAll(/(["'`])((?:(?!\1)[^\\\n]|\\.)*)\1/g)].map(
    ([, , text = ""]) => text,
  );
  const lists = [...code.matchAll(/\[(\s*(["'])[^"'\n]*\2\s*,?)+\s*\]/g)].map(([list]) =>
    list.replaceAll(/["',[\]]+/g, " ").trim(),
  );
  const calls = [...code.matchAll(/["']([\w./-]+)["']\s*,\s*\[([^\]]*)\]/g)].map(
    ([, program = "", rest = ""]) => `${program} ${rest.replaceAll(/["',]+/g, " ")}`,
  );
  const starts = STARTS.test(code);
  return {
    needsNetwork:
      addresses.length > 0
        ? isRemote && CALLS.test(code)
        : MODULES.test(code) && !SERVES.test(code),
    usesHome: HOMES.test(code),
    paths: texts.filter((text) => /^[\w./~*-][^\s<>]*$/.test(text)),
    removes: REMOVES.test(code),
    commands: starts ? [...texts.filter((text) => /\S\s+\S/.test(text)), ...lists, ...calls] : [],
  };
}
