import { type AgentToolResult, defineTool } from "@gyre/agent";
import type { GuardedTool } from "./access.ts";
import type { ToolEnv } from "./env.ts";
import { MAX_GLOB_CHARS, parseGlob } from "./globs.ts";
import { type LineTest, searchLines, SHOWN_LINE_CHARS, type ShownLine } from "./line-search.ts";
import { fromSource } from "./provenance.ts";
import { pathOf, readAccess } from "./read-access.ts";
import { checkPattern, PatternError, toRegExp } from "./regex-dialect.ts";
import { type FoundFile, ripgrepPath, runRipgrep } from "./ripgrep.ts";
import { counted, textResult } from "./text.ts";
import { listedName } from "./truncate.ts";
import { MAX_WALK_ENTRIES, walk } from "./walk.ts";
import { PathError } from "./workspace.ts";

export const GREP_DEFAULT_LIMIT = 100;
export const GREP_MAX_LIMIT = 1000;
export const GREP_MAX_CONTEXT = 20;
export const GREP_MAX_PATTERN_CHARS = 2000;
export const GREP_MAX_BYTES: number = 50 * 1024;
export const GREP_TIMEOUT_MS = 20_000;

/** Files are handed to ripgrep in bundles: few at first, so that a common word is found at once. */
const FIRST_BUNDLE_FILES = 64;
const MAX_BUNDLE_FILES = 2000;
/** A command line is not endless, least of all on Windows. */
const MAX_BUNDLE_CHARS = process.platform === "win32" ? 16_000 : 96_000;

export interface GrepToolOptions {
  /** The program to use; null for none. Default: the one that comes with this package. */
  ripgrep?: string | null;
  /** Default `MAX_WALK_ENTRIES`. */
  maxEntries?: number;
}

/** What an application is told of a search. */
export interface GrepDetails {
  pattern: string;
  path: string;
  /** Shown. */
  matches: number;
  files: number;
  /** What there is was not all shown, or not all looked at. */
  isPartial: boolean;
  engine: "ripgrep" | "javascript";
}

/**
 * Finds lines. What is searched is decided by our own walk, and what is shown is read
 * through the workspace; ripgrep only tells which lines of which files are worth it.
 * Without it the answer is the same, and takes longer.
 */
export function grepTool(env: ToolEnv, options: GrepToolOptions = {}): GuardedTool {
  const tool = defineTool({
    name: "grep",
    label: "Search",
    description:
      "Search files for lines that match a regular expression. Answers path:line: text. " +
      "Leaves out binary files, .git and what .gitignore leaves out. " +
      `At most ${GREP_DEFAULT_LIMIT} matches unless limit says more; long lines are cut at ` +
      `${SHOWN_LINE_CHARS} characters, around the match.`,
    parameters: {
      type: "object",
      properties: {
        pattern: {
          type: "string",
          minLength: 1,
          maxLength: GREP_MAX_PATTERN_CHARS,
          description: "Regular expression, matched line by line",
        },
        path: { type: "string", description: "File or folder; the workspace if absent" },
        glob: {
          type: "string",
          minLength: 1,
          maxLength: MAX_GLOB_CHARS,
          description: 'Only files like this, for example "*.ts" or "src/**/*.md"',
        },
        ignoreCase: { type: "boolean" },
        literal: { type: "boolean", description: "The pattern is plain text" },
        context: {
          type: "integer",
          minimum: 0,
          maximum: GREP_MAX_CONTEXT,
          description: "Lines to show before and after each match",
        },
        filesOnly: { type: "boolean", description: "Only the names of files with a match" },
        limit: {
          type: "integer",
          minimum: 1,
          maximum: GREP_MAX_LIMIT,
          description: `Default ${GREP_DEFAULT_LIMIT}`,
        },
      },
      required: ["pattern"],
    } as const,
    concurrent: true,
    idempotent: true,
    async execute(_id, args, signal) {
      checkPattern(args.pattern, args.literal ?? false);
      const search = new Search(env, args, options, signal);
      await search.run(pathOf(args));
      return search.result();
    },
  });
  return { ...tool, access: (args) => readAccess(env, "Search in", args) };
}

interface GrepArguments {
  pattern: string;
  glob?: string;
  ignoreCase?: boolean;
  literal?: boolean;
  context?: number;
  filesOnly?: boolean;
  limit?: number;
}

/** A file to look into. */
interface Candidate {
  path: string;
  test: LineTest;
  /** How many lines will match, if that is known: it need not be read further. */
  known?: number;
}

class Search {
  readonly #env: ToolEnv;
  readonly #args: GrepArguments;
  readonly #options: GrepToolOptions;
  readonly #signal: AbortSignal;
  readonly #deadline: number;
  readonly #limit: number;
  #folder = "";
  /** Absent once it is known to be of no use. */
  #ripgrep: string | undefined;
  #regExp: RegExp | undefined;
  readonly #found: { path: string; lines: ShownLine[] }[] = [];
  #matches = 0;
  #hasMore = false;
  #timedOut = false;
  #walkStopped = false;

  constructor(env: ToolEnv, args: GrepArguments, options: GrepToolOptions, signal: AbortSignal) {
    this.#env = env;
    this.#args = args;
    this.#options = options;
    this.#signal = signal;
    this.#deadline = env.clock.now() + GREP_TIMEOUT_MS;
    this.#limit = args.limit ?? GREP_DEFAULT_LIMIT;
  }

  async run(given: string): Promise<void> {
    const { ripgrep } = this.#options;
    this.#ripgrep = ripgrep === undefined ? await ripgrepPath() : (ripgrep ?? undefined);
    const info = await this.#env.workspace.stat(given);
    this.#folder = info.path;
    // A file that is named is searched whatever an ignore file says.
    if (info.kind !== "folder") return this.#searchBundle([info.path]);
    let bundle: string[] = [];
    let chars = 0;
    let maxFiles = FIRST_BUNDLE_FILES;
    for await (const path of this.#files(info.path)) {
      bundle.push(path);
      chars += path.length;
      if (bundle.length < maxFiles && chars < MAX_BUNDLE_CHARS) continue;
      await this.#searchBundle(bundle);
      if (this.#isOver) return;
      bundle = [];
      chars = 0;
      maxFiles = Math.min(maxFiles * 2, MAX_BUNDLE_FILES);
    }
    await this.#searchBundle(bundle);
  }

  get #isOver(): boolean {
    return this.#hasMore || this.#timedOut;
  }

  #isLate(): boolean {
    if (this.#env.clock.now() >= this.#deadline) this.#timedOut = true;
    return this.#timedOut;
  }

  async *#files(folder: string): AsyncGenerator<string> {
    const glob =
      this.#args.glob === undefined
        ? undefined
        : parseGlob(this.#args.glob, this.#env.workspace.root);
    const maxEntries = this.#options.maxEntries ?? MAX_WALK_ENTRIES;
    const walked = walk(this.#env.workspace, folder, { signal: this.#signal, maxEntries });
    for await (const entries of walked) {
      if (this.#isLate()) return;
      const files = entries.filter(({ kind }) => kind === "file").map(({ path }) => path);
      if (!glob || files.length === 0) {
        yield* files;
        continue;
      }
      const matches = glob.filter(
        files.map((path) => (folder === "" ? path : path.slice(folder.length + 1))),
      );
      yield* files.filter((_path, index) => matches[index]);
    }
    this.#walkStopped = walked.stopped;
  }

  async #searchBundle(paths: readonly string[]): Promise<void> {
    for (const candidate of await this.#worthAWhile(paths)) {
      if (this.#isOver || this.#isLate()) return;
      await this.#searchFile(candidate);
    }
  }

  /** The files that may have a match, in order. */
  async #worthAWhile(paths: readonly string[]): Promise<Candidate[]> {
    const byPattern = (path: string): Candidate => ({ path, test: this.#byPattern() });
    if (this.#ripgrep === undefined) return paths.map(byPattern);
    if (paths.length === 0) return [];
    // One more than is shown tells whether there are more.
    const enough = this.#limit - this.#matches + 1;
    // What it prints is read line by line, so a name may not go over two.
    const named = paths.filter((path) => !/[\n\r]/.test(path));
    const answer = await runRipgrep(
      this.#env,
      this.#ripgrep,
      { ...this.#args, maxMatches: this.#args.filesOnly ? 1 : enough },
      named,
      {
        enough,
        timeoutMs: Math.max(1, this.#deadline - this.#env.clock.now()),
        signal: this.#signal,
      },
    );
    if (answer.type === "unavailable") {
      this.#ripgrep = undefined;
      return paths.map(byPattern);
    }
    if (answer.timedOut) this.#timedOut = true;
    const found = new Map(answer.files.map((file) => [file.path, file]));
    return paths.flatMap((path) => {
      const file = found.get(path);
      if (file && (!file.isPartial || !this.#canTest())) return [byLine(file)];
      return file || (/[\n\r]/.test(path) && this.#canTest()) ? [byPattern(path)] : [];
    });
  }

  #byPattern(): LineTest {
    const regExp = (this.#regExp ??= toRegExp(this.#args.pattern, this.#args));
    return (_number, text) => regExp.exec(text())?.index ?? -1;
  }

  /** Whether we understand a pattern that ripgrep understands. */
  #canTest(): boolean {
    try {
      this.#byPattern();
      return true;
    } catch (error) {
      if (error instanceof PatternError) return false;
      throw error;
    }
  }

  async #searchFile({ path, test, known = Infinity }: Candidate): Promise<void> {
    const { filesOnly = false, context = 0, pattern } = this.#args;
    const room = this.#limit - this.#matches;
    const lines = await this.#linesOf(path, {
      what: `The pattern ${JSON.stringify(pattern)}`,
      test,
      maxMatches: Math.min(filesOnly ? 1 : room + 1, known),
      context: filesOnly ? 0 : context,
      signal: this.#signal,
      expired: () => this.#isLate(),
    });
    const kept: ShownLine[] = [];
    for (const line of lines) {
      if (line.isMatch && this.#matches === this.#limit) {
        this.#hasMore = true;
        break;
      }
      if (line.isMatch) this.#matches += 1;
      kept.push(line);
    }
    // Lines before the match that was one too many belong to it.
    const last = kept.findLastIndex(({ isMatch }) => isMatch);
    if (last < 0) return;
    if (this.#hasMore) kept.length = Math.min(kept.length, last + 1 + context);
    this.#found.push({ path, lines: kept });
  }

  async #linesOf(
    path: string,
    options: Parameters<typeof searchLines>[1],
  ): Promise<readonly ShownLine[]> {
    try {
      const { handle } = await this.#env.workspace.open(`./${path}`);
      try {
        return await searchLines(handle, options);
      } finally {
        await handle.close();
      }
    } catch (error) {
      // Gone meanwhile, or not to be read: there is nothing to show of it.
      if (error instanceof PathError) return [];
      throw error;
    }
  }

  result(): AgentToolResult {
    const { pattern, filesOnly = false } = this.#args;
    const { blocks, isCut } = this.#blocks();
    const said: string[] = [];
    if (this.#hasMore || isCut) {
      const what = filesOnly ? "file" : "match";
      const limit = isCut ? "" : `, or limit up to ${GREP_MAX_LIMIT}`;
      said.push(
        `There are more ${what === "file" ? "files" : "matches"} than shown. ` +
          `Use a narrower pattern, path or glob${limit} to see them.`,
      );
    }
    if (this.#timedOut) {
      said.push(
        `Stopped after ${GREP_TIMEOUT_MS / 1000} s: not all was searched. Give a path or glob.`,
      );
    }
    if (this.#walkStopped) {
      said.push(
        `Stopped after ${counted(this.#options.maxEntries ?? MAX_WALK_ENTRIES, "file")}: ` +
          "not all was searched. Give a path to search in.",
      );
    }
    const name = this.#folder || ".";
    const none = `No line matches ${JSON.stringify(pattern)} in ${listedName(name)}.`;
    const text = blocks.length === 0 ? none : fromSource({ kind: "file", name }, blocks.join("\n"));
    const details: GrepDetails = {
      pattern,
      path: this.#folder,
      matches: this.#matches,
      files: this.#found.length,
      isPartial: said.length > 0,
      engine: this.#ripgrep === undefined ? "javascript" : "ripgrep",
    };
    return textResult(said.length > 0 ? `${text}\n[${said.join(" ")}]` : text, details);
  }

  /** What was found as lines of text, as many as fit. */
  #blocks(): { blocks: string[]; isCut: boolean } {
    const { filesOnly = false, context = 0 } = this.#args;
    const blocks: string[] = [];
    let bytes = 0;
    for (const { path, lines } of this.#found) {
      const name = listedName(path);
      let last: number | undefined;
      for (const line of filesOnly ? lines.slice(0, 1) : lines) {
        const isApart = context > 0 && blocks.length > 0 && line.number - 1 !== last;
        const mark = line.isMatch ? ":" : "-";
        const text = filesOnly ? name : `${name}${mark}${line.number}${mark} ${line.text}`;
        bytes += Buffer.byteLength(text) + 1;
        if (bytes > GREP_MAX_BYTES) return { blocks, isCut: true };
        if (isApart && !filesOnly) blocks.push("--");
        blocks.push(text);
        last = line.number;
      }
    }
    return { blocks, isCut: false };
  }
}

/**
 * The lines that ripgrep found. A line is taken only if it is the one that ripgrep saw:
 * a file that was swapped for another meanwhile shows nothing.
 */
function byLine({ path, lines }: FoundFile): Candidate {
  const test: LineTest = (number, text) => {
    const found = lines.get(number);
    if (!found) return -1;
    const line = text();
    if (found.text !== undefined && !isSame(found.text, line)) return -1;
    return Buffer.from(line).subarray(0, found.column).toString().length;
  };
  return { path, test, known: lines.size };
}

/** Bytes that are no UTF-8 may have become more or fewer signs on one of the two ways. */
function isSame(a: string, b: string): boolean {
  return a === b || a.replace(/\ufffd+/g, "\ufffd") === b.replace(/\ufffd+/g, "\ufffd");
}
