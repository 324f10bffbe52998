import { closeSync, fstatSync, openSync, readSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { type Clock, errorMessage, toRecord } from "@gyre/ai";
import { logFile } from "@gyre/coding/internal/core/log-file";
import type { Environment } from "../../../core/io.ts";

/** The most prompts that are kept of a folder. */
export const MAX_PROMPTS = 1_000;
/** Longer prompts are not stored. */
const MAX_PROMPT_CHARS = 100_000;
/** The end of the file that is read. A file of twice this size is truncated to it. */
export const MAX_READ_BYTES: number = 4 * 1024 * 1024;
const OWNER_ONLY = 0o600;

export interface PromptHistoryOptions {
  /** The file with the prompts; undefined: they are kept in memory only. */
  path: string | undefined;
  /** The workspace: prompts of other folders are left out. */
  cwd: string;
  clock: Pick<Clock, "now">;
  /** Called once if the file cannot be used. */
  warn: (text: string) => void;
}

/** The file with the prompts of this user. */
export function promptHistoryPath(env: Environment): string {
  const state = env["XDG_STATE_HOME"];
  const base =
    state !== undefined && isAbsolute(state)
      ? state
      : join(env["HOME"] || homedir(), ".local", "state");
  return join(base, "gyre", "prompts.jsonl");
}

/** The prompts of a user in a folder. It never throws: a file error is reported once. */
export class PromptHistory {
  readonly #options: PromptHistoryOptions;
  #prompts: string[] | undefined;
  #append: ((text: string) => void) | undefined;
  #hasWarned = false;

  constructor(options: PromptHistoryOptions) {
    this.#options = options;
  }

  /** The oldest first. Read from the file when first asked for. */
  get prompts(): readonly string[] {
    return this.#all;
  }

  /** Adds a prompt, unless it equals the last one or begins with a space. */
  add(text: string): void {
    if (text.trim() === "" || text.startsWith(" ") || text === this.#all.at(-1)) return;
    this.#all.push(text);
    if (this.#all.length > MAX_PROMPTS) this.#all.shift();
    const { path, cwd, clock } = this.#options;
    if (path === undefined || text.length > MAX_PROMPT_CHARS) return;
    this.#guard("written", () => {
      this.#append ??= logFile(path);
      this.#append(`${JSON.stringify({ text, cwd, at: clock.now() })}\n`);
    });
  }

  get #all(): string[] {
    if (!this.#prompts) {
      this.#prompts = [];
      this.#guard("read", () => {
        this.#prompts = this.#read();
      });
    }
    return this.#prompts;
  }

  #read(): string[] {
    const { path, cwd } = this.#options;
    const tail = path === undefined ? undefined : readTail(path);
    if (path === undefined || !tail) return [];
    if (tail.size > 2 * MAX_READ_BYTES) shorten(path, tail.text);
    const prompts: string[] = [];
    // Most lines of a long file belong to other folders and need no parsing.
    const mark = JSON.stringify(cwd);
    for (const line of tail.text.split("\n")) {
      const text = line.includes(mark) ? parsePrompt(line, cwd) : undefined;
      if (text !== undefined && text !== prompts.at(-1)) prompts.push(text);
    }
    return prompts.slice(-MAX_PROMPTS);
  }

  #guard(what: "read" | "written", work: () => void): void {
    try {
      work();
    } catch (error) {
      if (this.#hasWarned) return;
      this.#hasWarned = true;
      this.#options.warn(`Earlier prompts cannot be ${what}: ${errorMessage(error)}`);
    }
  }
}

/** The end of a file, from the beginning of a line on; undefined where the file does not exist. */
function readTail(path: string): { text: string; size: number } | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const { size } = fstatSync(file);
    const start = Math.max(0, size - MAX_READ_BYTES);
    const bytes = Buffer.alloc(size - start);
    const text = bytes.toString("utf8", 0, readSync(file, bytes, 0, bytes.length, start));
    return { text: start === 0 ? text : text.slice(text.indexOf("\n") + 1), size };
  } finally {
    closeSync(file);
  }
}

/** Replaces the file in one step, so that concurrent readers see the old one or the new one. */
function shorten(path: string, text: string): void {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, text, { mode: OWNER_ONLY });
  renameSync(draft, path);
}

/** The prompt of a line; undefined where the line is damaged or belongs to another folder. */
function parsePrompt(line: string, cwd: string): string | undefined {
  try {
    const { cwd: folder, text } = toRecord(JSON.parse(line));
    return folder === cwd && typeof text === "string" ? text : undefined;
  } catch {
    return undefined;
  }
}
