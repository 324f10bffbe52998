import { findPaths, findWritten } from "../follow/written.ts";
import { foldConstants } from "./constants.ts";
import { isLocalAddress } from "./network.ts";

const ADDRESS = /\b(?:https?|wss?|ftp):\/\/[^\s"'`)]+/gi;
/** Code in the same word as the option before it. */
export const ATTACHED: RegExp = /^-[a-zA-Z]*[cepE].*[\s;("'`]/s;
/** Calls by which code reaches an address. */
const CALLS =
  /\b(?:fetch|urlopen|urlretrieve|requests?|httpx|aiohttp|axios|got|get|getprint|open|open_uri|file_get_contents|curl\w*|download|connect|WebSocket)\b|https?\./i;
/** Modules that are for the network alone. */
const MODULES =
  /\burllib\.request\b|\bhttp\.client\b|\b(?:requests|httpx)\.(?:get|post|put|delete|request)\b|\bsocket\.(?:create_connection|getaddrinfo|gethostbyname)|\b(?:smtplib|ftplib|paramiko|telnetlib)\b|\bopen_connection\b|\bxmlrpc\b|\/inet[46]?\/(?:tcp|udp)\/|\bsockaddr_in\b|["'](?:node:)?(?:https|net|tls|dns|dgram|http2)["']|\bNet::(?:HTTP|FTP|SMTP)|\bLWP\b|\bIO::Socket\b|\bTCPSocket\b|\bp?fsockopen\b|install\.packages|\bPkg\.add\b/;
/** A connection that code opens to something with a name. */
const CONNECTS =
  /\(\s*["'](?!localhost|127\.|0\.0\.0\.0)[\w-]+(?:\.[\w-]+)+["']\s*,\s*\d{1,5}\s*\)|\bsocket\b[^]{0,2000}?\.connect(?:_ex)?\s*\(\s*\(\s*(?!["'](?:localhost|127\.|::1|["']))|["'](?:node:)?http["']\)?\s*\.(?:get|request)\(\s*\{(?![^}]*(?:localhost|127\.))/;
/** Calls for an address that does not stand there. */
const FETCHES =
  /(?<![.\w])(?:globalThis\.)?(?:fetch|urlopen|urlretrieve)\(\s*(?!["'`]|\)|\w+\s*(?::[^)]*)?\)\s*(?:\{|:))/;
const SERVES = /createServer|\.listen\(|HTTPServer/;
const HOMES = /\bexpanduser\b|\bPath\.home\b|\bhomedir\(|\bDir\.home\b|(?:\benv\.|["'[])HOME\b/;
const REMOVES =
  /\bimport\s+(?:\w+\s*,\s*)*(?:remove|unlink)\b|\brmtree\b|\brmSync\b|\brmdirSync\b|\bfs(?:\/promises)?["')]*\.(?:promises\.)?(?:rm|rmdir|unlink)\b|\bunlink(?:Sync)?\b|\brm_rf?\b|\bremove_tree\b|\bos["')]*\.(?:remove|removedirs)\b|\bDeno\.remove|\bFile\.(?:delete|unlink)\b|(?<![.\w])rm\(/;
const STARTS =
  /\b(?:system|popen|exec\w*|(?:posix_)?spawn\w*|subprocess|Popen|check_(?:call|output)|run|qx)\b|`|\bopen\b[^;\n]*(?:["']\s*\||\|-?\s*["'])/;
/** Code that makes code, or finds functions by their names. */
const MAKES_CODE =
  /(?<![.\w])(?:exec|eval|Function)\s*\(|\beval\s+[$"'\w]|\bgetattr\(\s*(?:os|shutil|pathlib|subprocess)\b|\bctypes\b|\bglobals\(\)\s*\[|__builtins__|\bprocess\.binding\b/;
/** Starts a program whose name does not stand there. */
const STARTS_OTHER =
  /\b(?:os\.(?:system|popen|exec\w+|(?:posix_)?spawn\w+)|subprocess\.(?:run|call|check_call|check_output|Popen|getoutput|getstatusoutput)|pty\.spawn|(?:exec|execFile|spawn)Sync|child_process["')\s]*\.(?:exec|execFile|spawn|fork))\(\s*(?:os\.P_\w+\s*,\s*)?(?![rbuf]{0,2}["'`]|[[(]\s*(?:["'`]|sys\.executable|process\.execPath)|sys\.executable|process\.execPath|\))(?<name>\b[A-Za-z_]\w*(?=\s*[,)]))?|\b(?:system|exec)\b\s*\(?\s*[$@{]/g;
const AWK_STARTS_OTHER =
  /\bsystem\(\s*(?!"[^"]*"\s*\))|[\w)\]]\s*\|\s*getline|\bprintf?\b[^;}\n|]{0,500}\|\s*(?!")[A-Za-z_(]/;
/** Calls that remove files whose names stand in no text: put together, or passed in. */
const REMOVES_OTHER =
  /\b(?:unlink(?:Sync)?|rmtree|rmSync|rmdirSync|os\.(?:remove|removedirs))\s*\(?\s*(?:["'][^"'\n]*["']\s*[+.]|[A-Za-z_]\w*\s*[+.](?!\w+\()|os\.environ|process\.env|f["']|@ARGV|\$ENV)/;
const AWK_WRITES_OTHER =
  /\bsystem\(\s*"[^"]*"\s*["\w]|\b(?:print|printf)\b[^;}|]{0,500}?[^>]>{1,2}\s*(?:[A-Za-z_($]|"[^"]*"\s*[\w"(])/;
/** Finds the folder above the one that code runs in. */
const GOES_UP =
  /\bpardir\b|\bresolve\(\)\s*\.parents?\b|\bdirname\(\s*(?:os\.)?(?:getcwd|process\.cwd)|\bcwd\(\)\s*\.parents?\b|<\.\.\/|\bgetcwd\(\)[^\n]{0,40}\.parents?\b/;
/** Lists a folder, and reads what is in it. */
const LISTS = /\b(?:iterdir|listdir|scandir|readdir(?:Sync)?|glob|rglob|walk)\b/;
const READS_FOUND = /\bread(?:_text|_bytes|File|FileSync|lines)?\s*\(|\bopen\(/;
const AWK_STARTS = /\bsystem\b|\bgetline\b|\|/;

const AWK_WRITES = [/\b(?:print|printf)\b[^;}|]{0,500}?[^>]>\s*(?<q>")(?<path>[^"]+)"/g];
const READS = [
  /\bopen\(\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>\s*(?:\)|,\s*(?:encoding|["']r))/g,
  /\bPath\(\s*(?<q>["'])(?<path>[^"'`\n]+)\k<q>\s*\)\.read_(?:text|bytes)\b/g,
  /\breadFile(?:Sync)?\(\s*(?<q>["'`])(?<path>[^"'`\n]+)\k<q>/g,
];
/** Calls that write a file from its beginning, with what says which one where that is no text. */
const WRITES_OTHER = [
  /\bopen\(\s*(?<path>[^"'`,()\n]{1,200}?)\s*,\s*(?:mode\s*=\s*)?["'][wx]/g,
  /\b(?:writeFile|createWriteStream)(?:Sync)?\(\s*(?<path>[^"'`,()\n]{1,200}?)\s*,/g,
  /\bopen\b[^;\n"']{0,200}["']\+?>["']\s*,\s*(?<path>[$@][\w[\]]{1,200})/g,
  /(?<path>\b[A-Za-z_]\w{0,200})\.write_(?:text|bytes)\(/g,
];
/** The same with a text into which others are put. */
const WRITES_FORMATTED = [
  /\bopen\(\s*(?<q>["'])(?<path>[^"'\n]*)\k<q>\s*(?:%|\.format\()[^\n]{0,200}?,\s*(?:mode\s*=\s*)?["'][wx]/g,
];
/** What is moved away, and where to. */
const MOVES =
  /\b(?:rename|renameSync|move|replace)\s*\(?\s*(["'])(?<from>[^"'\n]+)\1\s*,\s*(["'])\/(?:tmp|dev)\//g;

/** What code in a command line does, as far as its text says so. */
export interface CodeUse {
  needsNetwork: boolean;
  /** It finds the user's own folder. */
  usesHome: boolean;
  /** Texts in it that may be paths. */
  paths: string[];
  /** Some of these it may remove. */
  removes: boolean;
  /** What it moves out of the workspace. */
  gone: string[];
  /** Files that it writes and does not read. */
  replaces: string[];
  /** Texts in it that may be command lines. */
  commands: string[];
  /** It removes or writes files whose names are not seen. */
  isUnclear: boolean;
  /** It finds the folder above. */
  goesUp: boolean;
  /** It reads what it finds in folders. */
  reads: boolean;
}

export function inspectCode(
  written: string,
  { program, args, isFile = false }: { program: string; args: readonly string[]; isFile?: boolean },
): CodeUse {
  const isAwk = program.endsWith("awk");
  // What is behind the code is passed to it.
  const operands = args.filter((arg) => arg !== "" && !arg.startsWith("-"));
  const passed = args.some((arg) => ATTACHED.test(arg)) ? operands : operands.slice(1);
  const code = foldConstants(written, { program, passed, isFile });
  const addresses = code.match(ADDRESS) ?? [];
  const isRemote = addresses.some((address) => !isLocalAddress(address));
  const texts = [...code.matchAll(/(["'`])((?:(?!\1)[^\\\n]|\\.)*)\1/g)].map(
    ([, , text = ""]) => text,
  );
  const lists = [...code.matchAll(/[[(](?:\s*(["'])[^"'\n]*\1(?:\s*,)?)+\s*[\])]/g)].map(([list]) =>
    list.replaceAll(/["',[\]()]+/g, " ").trim(),
  );
  const calls = [...code.matchAll(/["']([\w./-]+)["']\s*,\s*\[([^\]]*)\]/g)].map(
    ([, program = "", rest = ""]) => `${program} ${rest.replaceAll(/["',]+/g, " ")}`,
  );
  const starts = (isAwk ? AWK_STARTS : STARTS).test(code);
  const unpiped = texts.map((text) => text.replaceAll(/^\s*\||\|\s*$/g, ""));
  const commands = [...unpiped, ...passed, passed.join(" ")].filter((text) =>
    /\S\s+\S|^[\w.-]*\/[\w./-]+$/.test(text),
  );
  const quoted = [...code.matchAll(/\bqx\s*[({[/|]([^\n]*?)[)}\]/|]/g)].map(
    ([, text = ""]) => text,
  );
  const systems = [
    ...code.matchAll(
      /(?:\b(?:system|exec)|["']-?\|-?["']\s*,)\s*\(?\s*((?:["'][^"'\n]*["'](?:\s*,\s*)?){2,})/g,
    ),
  ].map(([, list = ""]) => list.replaceAll(/["',]+/g, " ").trim());
  const several = [...code.matchAll(/\b(?:spawn|exec)[lv]\w*\(([^)]*)\)/g)].map(([, list = ""]) =>
    list
      .replaceAll(/["',]+|\bos\.\w+/g, " ")
      .trim()
      .replace(/^(\S+)\s+\1\b/, "$1"),
  );
  const read = new Set(findPaths(code, READS));
  const replaced = isAwk ? findPaths(code, AWK_WRITES) : findWritten(code);
  const paths = texts
    .map((text) => text.replace(/^\+?[<>|]{1,2}\s*/, "").replaceAll(/\$\{[^}]*\}/g, "*"))
    .filter((text) => /^[\w./~*-][^\s<>]*$/.test(text));
  const removes = REMOVES.test(code);
  return {
    needsNetwork:
      addresses.length > 0
        ? isRemote && (CALLS.test(code) || MODULES.test(code))
        : (MODULES.test(code) || CONNECTS.test(code) || FETCHES.test(code)) && !SERVES.test(code),
    usesHome: HOMES.test(code),
    paths,
    removes,
    gone: [...code.matchAll(MOVES)].map(({ groups }) => groups?.["from"] ?? ""),
    replaces: [
      ...replaced
        .filter((path) => !read.has(path))
        .map((path) => path.replaceAll(/\$\{[^}]*\}/g, "*")),
      ...findPaths(code, WRITES_FORMATTED).map((path) =>
        path.replaceAll(/%[-\d.]*[a-z]|\{[^}]*\}/g, "*"),
      ),
    ],
    commands: starts ? [...commands, ...lists, ...calls, ...quoted, ...several, ...systems] : [],
    isUnclear: isAwk
      ? AWK_WRITES_OTHER.test(code) || AWK_STARTS_OTHER.test(code)
      : REMOVES_OTHER.test(code) ||
        MAKES_CODE.test(code) ||
        startsOther(code) ||
        (removes && paths.length === 0) ||
        findPaths(code, WRITES_OTHER).some((path) => !readsToo(code, path)),
    goesUp: GOES_UP.test(code),
    reads: LISTS.test(code) && READS_FOUND.test(code),
  };
}

/** Whether code starts a program of which no text says which one. */
function startsOther(code: string): boolean {
  return [...code.matchAll(STARTS_OTHER)].some(({ groups }) => {
    const name = groups?.["name"];
    // A list of texts that was put aside is looked at as a command.
    return (
      name === undefined ||
      !new RegExp(`\\b${name}\\s*=\\s*\\[(?:\\s*(?:"[^"\\n]*"|'[^'\\n]*')\\s*,?)+\\s*\\]`).test(
        code,
      )
    );
  });
}

/** Whether code reads the file that it writes: it edits that. */
function readsToo(code: string, path: string): boolean {
  const name = path.replaceAll(/[.*+?^${}()|\\[\]/]/g, String.raw`\$&`);
  return new RegExp(
    `\\b(?:open|read\\w*)\\(\\s*${name}\\s*(?:\\)|,\\s*(?:encoding|["'](?:r|utf)))|(?<!\\w)${name}\\.(?:read|open\\(\\))`,
  ).test(code);
}

/** Signs at which a command may begin in a text of another language. */
const BEGINS = /[;!|&\n\t{}()'"`=]+|(?<!\w):\s|\\[nt]/;
/** Segments of a text that are looked at. */
const MAX_MENTIONED = 100;

/** Commands that may be in a text, as words: one where each part of it begins, or at every word. */
export function findMentioned(text: string, isEverywhere: boolean): string[][] {
  const segments = text.split(BEGINS).slice(0, MAX_MENTIONED);
  return segments.flatMap((segment) => {
    const words = segment.trim().split(/\s+/).slice(0, MAX_MENTIONED);
    const starts = isEverywhere ? words.keys() : [0];
    return [...starts].map((at) => words.slice(at));
  });
}
