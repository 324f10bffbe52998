import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { AgentToolResult } from "@gyre/agent";
import { errnoOf } from "@gyre/ai";
import { limitPage, type ToolEnv } from "../../contract/env.ts";
import { parseGlob } from "../../workspace/globs.ts";
import {
  GREP_MAX_BYTES,
  GREP_MAX_LIMIT,
  GREP_TIMEOUT_MS,
  type GrepDetails,
  type GrepToolOptions,
} from "./tool.ts";
import { type LineTest, searchLines, type ShownLine } from "./line-search.ts";
import { TEXT_HEAD_BYTES, textEncoding } from "../../text/encoding.ts";
import { fromSource, humanSize } from "@gyre/ai/text";
import { checkPattern, PatternError, toRegExp } from "../pattern.ts";
import { type FoundFile, ripgrepPath, runRipgrep } from "../ripgrep.ts";
import { counted, textResult } from "../../text/text.ts";
import { listedName, PageMeter } from "../../text/truncate.ts";
import { grepEntry } from "./entry.ts";
import { findReadRule } from "../../workspace/read-rules.ts";
import { MAX_WALK_ENTRIES, walk } from "../../workspace/walk.ts";
import { PathError } from "../../workspace/workspace.ts";

/** Files are handed to ripgrep in bundles: few at first, so that a common word is found at once. */
const FIRST_BUNDLE_FILES = 64;
const MAX_BUNDLE_FILES = 2000;
/** A command line is not endless, least of all on Windows. */
const MAX_BUNDLE_CHARS = process.platform === "win32" ? 16_000 : 96_000;

/** From this size on, a file that begins as binary ones do is not handed to ripgrep, which reads it to its end. */
const MAX_BINARY_BYTES = 16 * 1024 * 1024;
/** Larger files are not searched. */
const MAX_FILE_BYTES = 1024 * 1024 * 1024;
/** When the time is up, what was found by then is read for this long. */
const GRACE_MS = 2_000;
/** Files that are left out and shown by name. */
const MAX_NAMED_FILES = 5;

/** The arguments of a call, with its numbers within their limits. */
export interface GrepQuery {
  pattern: string;
  glob?: string;
  ignoreCase?: boolean;
  literal?: boolean;
  context?: number;
  filesOnly?: boolean;
  limit: number;
}

/** Searches `path` and answers as the tool does. */
export async function searchFiles(
  env: ToolEnv,
  query: GrepQuery,
  path: string,
  options: GrepToolOptions,
  signal: AbortSignal,
): Promise<AgentToolResult> {
  checkPattern(query.pattern, query.literal ?? false);
  const search = new Search(env, query, options, signal);
  await search.run(path);
  return search.result();
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
  readonly #args: GrepQuery;
  readonly #options: GrepToolOptions;
  readonly #signal: AbortSignal;
  readonly #timeoutMs: number;
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
  readonly #forbids: ((path: string) => boolean) | undefined;
  /** Files that rules forbid to read. */
  #forbidden = 0;
  /** Files that are too large, with their sizes. */
  readonly #tooLarge: string[] = [];

  constructor(env: ToolEnv, args: GrepQuery, options: GrepToolOptions, signal: AbortSignal) {
    this.#env = env;
    this.#args = args;
    this.#options = options;
    this.#signal = signal;
    this.#timeoutMs = options.timeoutMs ?? GREP_TIMEOUT_MS;
    this.#deadline = env.clock.now() + this.#timeoutMs;
    this.#limit = args.limit;
    this.#forbids = findReadRule(env.workspace, grepEntry.name);
  }

  async run(given: string): Promise<void> {
    const { ripgrep } = this.#options;
    this.#ripgrep = ripgrep === undefined ? await ripgrepPath() : (ripgrep ?? undefined);
    const info = await this.#env.workspace.stat(given);
    this.#folder = info.path;
    // A file that is named is searched whatever an ignore file says.
    if (info.kind !== "folder") {
      // One that is neither, as a pipe, would be waited for: opening refuses it.
      const { handle } = await this.#env.workspace.open(given);
      await handle.close();
      return this.#searchBundle([info.path]);
    }
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
      const files = entries
        .filter(({ kind, path }) => kind === "file" && !this.#isForbidden(path))
        .map(({ path }) => path);
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

  #isForbidden(path: string): boolean {
    const isForbidden = this.#forbids?.(path) ?? false;
    if (isForbidden) this.#forbidden += 1;
    return isForbidden;
  }

  async #searchBundle(paths: readonly string[]): Promise<void> {
    const isSmall: boolean[] = [];
    for (const path of paths) isSmall.push(!(await this.#isTooLarge(path)));
    const small = paths.filter((_path, index) => isSmall[index]);
    for (const candidate of await this.#worthAWhile(small)) {
      if (this.#hasMore || this.#isLateFor(candidate)) return;
      await this.#searchFile(candidate);
    }
  }

  /** Matches that are known are worth a moment more. */
  #isLateFor({ known }: Candidate): boolean {
    const isLate = this.#isLate();
    return known === undefined ? isLate : this.#env.clock.now() >= this.#deadline + GRACE_MS;
  }

  async #isTooLarge(path: string): Promise<boolean> {
    const size = findSize(join(this.#env.workspace.root, path));
    if (size <= MAX_BINARY_BYTES) return false;
    if (size <= MAX_FILE_BYTES && !(await this.#beginsAsBinary(path))) return false;
    this.#tooLarge.push(`${listedName(path)} (${humanSize(size)})`);
    return true;
  }

  async #beginsAsBinary(path: string): Promise<boolean> {
    try {
      const { handle } = await this.#env.workspace.open(`./${path}`);
      try {
        const whole = Buffer.alloc(TEXT_HEAD_BYTES);
        const { bytesRead } = await handle.read(whole, 0, TEXT_HEAD_BYTES, 0);
        const head = whole.subarray(0, bytesRead);
        return head.includes(0) && !textEncoding(head)?.startsWith("utf-16");
      } finally {
        await handle.close();
      }
    } catch (error) {
      // Gone meanwhile, or not to be read: then it is not searched either.
      if (error instanceof PathError) return true;
      throw error;
    }
  }

  /** The files that may have a match, in order. */
  async #worthAWhile(paths: readonly string[]): Promise<Candidate[]> {
    const byPattern = (path: string): Candidate => ({ path, test: this.#byPattern() });
    if (this.#ripgrep === undefined) return paths.map(byPattern);
    if (paths.length === 0) return [];
    // One more than is shown reveals whether there are more.
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

  async #searchFile(candidate: Candidate): Promise<void> {
    const { path, test, known = Infinity } = candidate;
    const { filesOnly = false, context = 0, pattern } = this.#args;
    const room = this.#limit - this.#matches;
    const lines = await this.#readLines(path, {
      what: `The pattern ${JSON.stringify(pattern)}`,
      test,
      maxMatches: Math.min(filesOnly ? 1 : room + 1, known),
      context: filesOnly ? 0 : context,
      signal: this.#signal,
      expired: () => this.#isLateFor(candidate),
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

  async #readLines(
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
    const notes: string[] = [];
    if (this.#hasMore || isCut) {
      const what = filesOnly ? "file" : "match";
      const limit = isCut ? "" : `, or limit up to ${GREP_MAX_LIMIT}`;
      notes.push(
        `There are more ${what === "file" ? "files" : "matches"} than shown. ` +
          `Use a narrower pattern, path or glob${limit} to see them.`,
      );
    }
    if (this.#timedOut) {
      notes.push(
        `Stopped after ${this.#timeoutMs / 1000} s: not all was searched. Give a path or glob.`,
      );
    }
    if (this.#walkStopped) {
      notes.push(
        `Stopped after ${counted(this.#options.maxEntries ?? MAX_WALK_ENTRIES, "file")}: ` +
          "not all was searched. Give a path to search in.",
      );
    }
    if (this.#tooLarge.length > 0) {
      const { length } = this.#tooLarge;
      const names = this.#tooLarge.slice(0, MAX_NAMED_FILES).join(", ");
      const more = length > MAX_NAMED_FILES ? ` and ${length - MAX_NAMED_FILES} more` : "";
      const were = length === 1 ? "was" : "were";
      notes.push(
        `${counted(length, "file")} ${were} left out, as too large to search: ${names}${more}.`,
      );
    }
    if (this.#forbidden > 0) {
      const were = this.#forbidden === 1 ? "was" : "were";
      notes.push(
        `${counted(this.#forbidden, "file")} ${were} left out: rules forbid to read them.`,
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
      shownLines: blocks.length,
      isPartial: notes.length > 0,
      engine: this.#ripgrep === undefined ? "javascript" : "ripgrep",
    };
    return textResult([text, ...(notes.length > 0 ? [`[${notes.join(" ")}]`] : [])], details);
  }

  /** What was found as lines of text, as many as fit. */
  #blocks(): { blocks: string[]; isCut: boolean } {
    const { filesOnly = false, context = 0 } = this.#args;
    const blocks: string[] = [];
    const page = new PageMeter(limitPage(this.#env, GREP_MAX_BYTES));
    for (const { path, lines } of this.#found) {
      const name = listedName(path);
      let last: number | undefined;
      for (const line of filesOnly ? lines.slice(0, 1) : lines) {
        const isApart = context > 0 && blocks.length > 0 && line.number - 1 !== last;
        const mark = line.isMatch ? ":" : "-";
        const text = filesOnly ? name : `${name}${mark}${line.number}${mark} ${line.text}`;
        if (!page.add(text)) return { blocks, isCut: true };
        if (isApart && !filesOnly) blocks.push("--");
        blocks.push(text);
        last = line.number;
      }
    }
    return { blocks, isCut: false };
  }
}

/** Only a hint, so the path alone will do; 0 where there is nothing to see. */
function findSize(path: string): number {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
  } catch (error) {
    // A folder on the way became something else, or may not be looked into: it will not be opened.
    if (errnoOf(error) === undefined) throw error;
    return 0;
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
