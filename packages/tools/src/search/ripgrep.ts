import type { ToolEnv } from "../contract/env.ts";
import { type ProgramEnd, runProgram } from "../process/processes.ts";
import { PatternError, type PatternOptions } from "./pattern.ts";
import type { SandboxPolicy } from "../sandbox/sandbox.ts";

/** Lines longer than this are not printed by ripgrep, only mentioned. */
const MAX_PRINTED_COLUMNS = 500;
/** What of its complaints is passed on. */
const MAX_COMPLAINT_CHARS = 400;

const EXIT_FOUND = 0;
const EXIT_NONE = 1;
const EXIT_ERROR = 2;

export interface RipgrepQuery extends PatternOptions {
  pattern: string;
  /** Matching lines of one file. */
  maxMatches: number;
}

/** A line that ripgrep found. */
export interface FoundLine {
  /** Absent where it is too long. */
  text?: string;
  /** Where the match begins, in bytes. */
  column: number;
}

/** A file that ripgrep found something in. */
export interface FoundFile {
  path: string;
  lines: Map<number, FoundLine>;
  /** It has bytes that made ripgrep stop: all of it has to be looked at. */
  isPartial: boolean;
}

export type RipgrepAnswer =
  | { type: "found"; files: FoundFile[]; timedOut: boolean }
  /** It could not be used; another way has to be found. */
  | { type: "unavailable" };

let bundled: Promise<string | undefined> | undefined;

/** The program that comes with us; absent on a platform that it is not made for. */
export function ripgrepPath(): Promise<string | undefined> {
  bundled ??= import("@vscode/ripgrep").then(
    ({ rgPath }) => rgPath,
    // It throws while loading where the platform has no build of it.
    () => undefined,
  );
  return bundled;
}

/**
 * Which lines of the given files match. The files are named one by one, in the order of
 * the answer: what to search is decided by us, and ripgrep walks through no folders.
 * Once `enough` matches are known the rest of the files may be left out. Throws
 * `PatternError` on a pattern that it does not understand.
 */
export async function runRipgrep(
  env: ToolEnv,
  program: string,
  query: RipgrepQuery,
  paths: readonly string[],
  limits: { enough: number; timeoutMs: number; signal: AbortSignal },
): Promise<RipgrepAnswer> {
  const answer = new Answer(limits.enough);
  const stop = new AbortController();
  // It looks at files and does nothing else. Named, these are there also beneath /tmp,
  // of which a sandbox has its own.
  const policy: SandboxPolicy = {
    writable: [],
    readOnly: [...listReadable(env.workspace), program],
    hidden: [],
    network: false,
  };
  let end: ProgramEnd;
  try {
    const sandbox = await env.sandbox();
    const spec = sandbox.wrap(
      {
        argv: [program, ...flags(query), "--", ...paths.map((path) => `./${path}`)],
        cwd: env.workspace.root,
        env: env.environment,
      },
      policy,
    );
    end = await runProgram(spec, {
      timeoutMs: limits.timeoutMs,
      signal: AbortSignal.any([limits.signal, stop.signal]),
      spoolFolder: env.spoolFolder,
      clock: env.clock,
      onOutput(piece, stream) {
        if (stream === "stdout") answer.feed(piece);
        if (answer.isEnough) stop.abort();
      },
    });
  } catch {
    // Not there, not allowed, no sandbox for it: the other way is as safe, and slower.
    limits.signal.throwIfAborted();
    return { type: "unavailable" };
  }
  limits.signal.throwIfAborted();
  const files = answer.end();
  if (stop.signal.aborted || end.timedOut) {
    return { type: "found", files, timedOut: end.timedOut };
  }
  const complaint = end.stderr.head.trim();
  if (complaint !== "" && end.exitCode === EXIT_ERROR && isAboutPattern(complaint)) {
    throw new PatternError(query.pattern, `${complaint.slice(0, MAX_COMPLAINT_CHARS)}\n`);
  }
  const hasRun =
    end.exitCode === EXIT_FOUND ||
    // Some files could not be read. Those complaints are switched off.
    ((end.exitCode === EXIT_NONE || end.exitCode === EXIT_ERROR) && complaint === "");
  return hasRun ? { type: "found", files, timedOut: false } : { type: "unavailable" };
}

/** All that the tools may read of it. */
function listReadable({ root, folders, readable }: ToolEnv["workspace"]): string[] {
  return [root, ...folders, ...readable];
}

function flags(query: RipgrepQuery): string[] {
  return [
    "--no-config",
    "--no-messages",
    "--no-ignore",
    "--hidden",
    "--no-follow",
    "--color=never",
    "--no-heading",
    // What was found is known also when it is ended before its time.
    "--line-buffered",
    "--with-filename",
    "--null",
    "--line-number",
    "--column",
    "--crlf",
    // Files in the order in which they are named.
    "--threads=1",
    // A map of a file that is cut short meanwhile ends the program.
    "--no-mmap",
    "--engine=auto",
    `--max-columns=${MAX_PRINTED_COLUMNS}`,
    `--max-count=${query.maxMatches}`,
    query.ignoreCase ? "--ignore-case" : "--case-sensitive",
    ...(query.literal ? ["--fixed-strings"] : []),
    `--regexp=${query.pattern}`,
  ];
}

function isAboutPattern(complaint: string): boolean {
  return /regex (?:parse error|could not be compiled)|PCRE2: error|not allowed in a regex|exceeds size limit/i.test(
    complaint,
  );
}

const OMITTED = /^\[Omitted long /;

/** Reads what ripgrep prints: `path NUL line:column:text`, and a word on binary files. */
class Answer {
  readonly #enough: number;
  readonly #files: FoundFile[] = [];
  #open = "";
  #matches = 0;
  /** A further file has begun since there were enough matches: the last one is complete. */
  isEnough = false;

  constructor(enough: number) {
    this.#enough = enough;
  }

  feed(piece: string): void {
    const lines = (this.#open + piece).split("\n");
    this.#open = lines.pop() ?? "";
    for (const line of lines) this.#take(line);
  }

  end(): FoundFile[] {
    return this.#files;
  }

  #take(line: string): void {
    if (this.isEnough) return;
    const [, path, number, column, text = ""] =
      /^\.\/([^\0]*)\0(\d+):(\d+):(.*)$/s.exec(line) ?? [];
    if (path !== undefined) {
      const found: FoundLine = {
        column: Number(column) - 1,
        ...(!OMITTED.test(text) && { text: text.replace(/\r$/, "") }),
      };
      this.#file(path)?.lines.set(Number(number), found);
      this.#matches += 1;
      return;
    }
    const binary = /^\.\/(.*?): binary file matches \(found /s.exec(line)?.[1];
    const file = binary === undefined ? undefined : this.#file(binary);
    if (file) file.isPartial = true;
  }

  #file(path: string): FoundFile | undefined {
    const last = this.#files.at(-1);
    if (last?.path === path) return last;
    if (this.#matches >= this.#enough) {
      this.isEnough = true;
      return undefined;
    }
    const file: FoundFile = { path, lines: new Map(), isPartial: false };
    this.#files.push(file);
    return file;
  }
}
