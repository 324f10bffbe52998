import { realpathSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import type { Environment } from "../../../core/io.ts";
import type { Span } from "./row.ts";

/** A part of a text, and where it leads. */
export interface FoundLink {
  readonly start: number;
  readonly end: number;
  readonly target: string;
}

/** Finds addresses, and files of the workspace, in a text as it is shown. A link leads to what its text says. */
export type FindLinks = (text: string) => readonly FoundLink[];

const MAX_TARGET_CHARS = 2_000;
/** Of one text; more are not looked at. */
const MAX_CANDIDATES = 200;
/** Answers about files that are kept, and for how long "there is none" is. */
const MAX_KNOWN = 2_000;
const MISSING_MS = 2_000;
/** Addresses, and words with a dot or a slash in them, which a line and a column may follow. */
const CANDIDATE =
  /https?:\/\/[^\s<>"'`|\\^{}\p{Cc}]+|(?<![\p{L}\p{N}_./@~+-])[\p{L}\p{N}_@+-]*(?:[./]+[\p{L}\p{N}_@+-]+)+(?::\d+(?::\d+)?)?/gu;
const TRAILING = /[.,;:!?'"*_)\]]+$/;
const PRINTABLE = /^[\x21-\x7e]+$/;
const PLACE = /:(\d+)(?::\d+)?$/;

/** From this version on tmux keeps links, and gives them to terminals that have them. */
const TMUX_VERSION = [3, 4] as const;
const VTE_VERSION = 5_001;
const KONSOLE_VERSION = 201_200;
const PROGRAMS: ReadonlySet<string> = new Set(
  "iTerm.app WezTerm vscode ghostty Hyper mintty rio zed".split(" "),
);
const TERMS = /kitty|ghostty|alacritty|^foot|^contour|wezterm/;

/** Whether the terminal has links (OSC 8), as far as its variables say so. */
export function hasHyperlinks(env: Environment): boolean {
  const { FORCE_HYPERLINK: forced, STY, TERM = "", TERM_PROGRAM = "", TMUX } = env;
  if (forced !== undefined && forced !== "") return forced !== "0" && forced !== "false";
  if (STY !== undefined || TERM === "dumb" || TERM === "linux") return false;
  if (TMUX !== undefined || TERM_PROGRAM === "tmux") {
    return TERM_PROGRAM === "tmux" && isAtLeast(env["TERM_PROGRAM_VERSION"] ?? "", TMUX_VERSION);
  }
  return (
    PROGRAMS.has(TERM_PROGRAM) ||
    TERMS.test(TERM) ||
    env["KITTY_WINDOW_ID"] !== undefined ||
    env["WT_SESSION"] !== undefined ||
    Number(env["VTE_VERSION"]) >= VTE_VERSION ||
    Number(env["KONSOLE_VERSION"]) >= KONSOLE_VERSION
  );
}

function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [, first, second] = /^(\d+)\.(\d+)/.exec(version) ?? [];
  return Number(first) > major || (Number(first) === major && Number(second) >= minor);
}

/**
 * `root` is the folder whose files may be linked; undefined: none are. Some terminals find files, with their lines, by
 * themselves: there only addresses are linked.
 */
export function openLinks(env: Environment, root: () => string | undefined): FindLinks {
  const findsFiles = env["TERM_PROGRAM"] === "vscode";
  const files = new FileLinks(env);
  return (text) => {
    const found: FoundLink[] = [];
    let count = 0;
    for (const { 0: candidate, index: start } of text.matchAll(CANDIDATE)) {
      if (++count > MAX_CANDIDATES) break;
      const isAddress = /^https?:/.test(candidate);
      const folder = isAddress || findsFiles ? undefined : root();
      const shown = isAddress ? trimAddress(candidate) : candidate;
      const target = isAddress ? readAddress(shown) : folder && files.find(shown, folder);
      if (target !== undefined && target.length <= MAX_TARGET_CHARS) {
        found.push({ start, end: start + shown.length, target });
      }
    }
    return found;
  };
}

/** The address without the signs of the sentence around it. */
function trimAddress(candidate: string): string {
  for (let text = candidate; ;) {
    const [last] = TRAILING.exec(text) ?? [];
    if (last === undefined) return text;
    const isClosing = text.endsWith(")");
    const isBalanced = count(text, "(") >= count(text, ")");
    if (isClosing && isBalanced) return text;
    text = text.slice(0, -1);
  }
}

function count(text: string, sign: string): number {
  return text.split(sign).length - 1;
}

/** What an address leads to; undefined for one that would lead elsewhere than it seems to. */
function readAddress(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { host, href, password, username } = new URL(text);
  if (username !== "" || password !== "" || host === "" || !PRINTABLE.test(href)) return undefined;
  return href;
}

/** Looks files up, and remembers them. */
class FileLinks {
  readonly #known = new Map<string, { target: string | undefined; at: number }>();
  readonly #hasLines: boolean;
  readonly #host: string;

  constructor(env: Environment) {
    // Others would look for a file whose name ends so.
    this.#hasLines = env["KITTY_WINDOW_ID"] !== undefined;
    const { WSL_DISTRO_NAME: wsl } = env;
    const isWindows = process.platform === "win32";
    this.#host = isWindows ? "" : wsl === undefined ? hostname() : `wsl$/${encodeURI(wsl)}`;
  }

  find(shown: string, root: string): string | undefined {
    const key = `${root}\0${shown}`;
    const now = performance.now();
    const known = this.#known.get(key);
    if (known && (known.target !== undefined || now - known.at < MISSING_MS)) return known.target;
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    const target = this.#look(shown, root);
    this.#known.set(key, { target, at: now });
    return target;
  }

  #look(shown: string, root: string): string | undefined {
    const [, line] = PLACE.exec(shown) ?? [];
    const path = resolve(root, shown.replace(PLACE, ""));
    if (!isWithin(path, root)) return undefined;
    try {
      if (!statSync(path).isFile()) return undefined;
      // A link must not lead out of the folder.
      if (!isWithin(realpathSync(path), realpathSync(root))) return undefined;
    } catch {
      // There is no such file.
      return undefined;
    }
    const { pathname } = pathToFileURL(path);
    const place = line !== undefined && this.#hasLines ? `#${line}` : "";
    const target = `file://${this.#host}${pathname}${place}`;
    return PRINTABLE.test(target) ? target : undefined;
  }
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Spans of which those parts that are links lead somewhere. `cut` gives a part of a span. */
export function linkSpans<T extends Span>(
  spans: readonly T[],
  find: FindLinks,
  cut: (span: T, from: number, to: number) => T,
): T[] {
  const links = find(spans.map(({ text }) => text).join(""));
  if (links.length === 0) return [...spans];
  const linked: T[] = [];
  let start = 0;
  for (const span of spans) {
    const end = start + span.text.length;
    let at = start;
    for (const link of links) {
      const from = Math.max(at, link.start);
      const to = Math.min(end, link.end);
      if (from >= to) continue;
      if (from > at) linked.push(cut(span, at - start, from - start));
      linked.push({ ...cut(span, from - start, to - start), link: link.target });
      at = to;
    }
    if (at === start) linked.push(span);
    else if (at < end) linked.push(cut(span, at - start, end - start));
    start = end;
  }
  return linked;
}
