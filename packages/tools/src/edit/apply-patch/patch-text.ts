import { EditError } from "../error.ts";

/** A part of a file that a patch changes. */
export interface PatchHunk {
  /** Line of the patch, from 1. */
  at: number;
  /** Lines of the file, from the outermost, that the place is beneath. */
  headers: string[];
  old: string[];
  next: string[];
  /** It is at the very end of the file. */
  isAtEnd: boolean;
}

interface PatchPart {
  /** Line of the patch, from 1. */
  at: number;
  path: string;
}

export type PatchFile =
  | (PatchPart & { type: "add"; content: string })
  | (PatchPart & { type: "delete" })
  | (PatchPart & { type: "update"; moveTo?: string; hunks: PatchHunk[] });

const BEGIN = "*** Begin Patch";
const END = "*** End Patch";
const END_OF_FILE = "*** End of File";
const FILE = /^\*\*\* (Add|Update|Delete) File:(.*)$/;
const MOVE = /^\*\*\* Move to:(.*)$/;
/** Line numbers as in a unified diff say nothing that is certain; text behind them does. */
const UNIFIED = /^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@(.*)$/;
const HEREDOC = /^(?:(?:apply_patch|cat)\s+)?<<-?\s*(['"]?)(\w+)\1\s*$/;
const FENCE = /^```\w*$/;

/** The files of a patch. Throws `EditError` with the line of the patch that is invalid. */
export function parsePatch(patch: string): PatchFile[] {
  const { lines, offset, isEnded } = unwrapped(patch.split(/\r?\n/));
  const reader = new PatchReader(lines, offset);
  const files = reader.files();
  if (files.length === 0) throw fault(offset, `there is nothing between "${BEGIN}" and "${END}"`);
  if (!isEnded && !isSurelyWhole(files, lines)) {
    throw fault(
      offset + lines.length,
      `"${END}" is missing, and the patch may have been cut off. Send all of it`,
    );
  }
  return files;
}

/** The lines inside of the markers, and how many are before them. */
function unwrapped(all: readonly string[]): { lines: string[]; offset: number; isEnded: boolean } {
  let first = all.findIndex((line) => line.trim() !== "");
  let last = all.findLastIndex((line) => line.trim() !== "");
  const opening = all[first]?.trim() ?? "";
  const tag = HEREDOC.exec(opening)?.[2] ?? (FENCE.test(opening) ? "```" : undefined);
  if (tag !== undefined) first += 1;
  if (all[first]?.trim() !== BEGIN) {
    throw fault(first + 1, `a patch starts with "${BEGIN}", not with ${quoted(all[first])}`);
  }
  const isClosed = tag !== undefined && all[last]?.trim() === tag;
  if (isClosed) last = all.findLastIndex((line, index) => index < last && line.trim() !== "");
  const end = all.findIndex((line) => line.trimEnd() === END);
  if (end >= 0 && end < last) throw fault(end + 2, `there is more behind "${END}"`);
  return {
    lines: all.slice(first + 1, end >= 0 ? end : last + 1),
    offset: first + 1,
    // A wrapper that is closed shows as well that nothing was cut off.
    isEnded: end >= 0 || isClosed,
  };
}

/** Without its end marker: whether the last part cannot go on. */
function isSurelyWhole(files: readonly PatchFile[], lines: readonly string[]): boolean {
  const last = files.at(-1);
  if (last?.type !== "update") return last?.type === "delete";
  return last.hunks.at(-1)?.isAtEnd === true || lines.at(-1)?.startsWith(" ") === true;
}

class PatchReader {
  readonly #lines: readonly string[];
  readonly #offset: number;
  #index = 0;

  constructor(lines: readonly string[], offset: number) {
    this.#lines = lines;
    this.#offset = offset;
  }

  files(): PatchFile[] {
    const files: PatchFile[] = [];
    while (this.#index < this.#lines.length) {
      const line = this.#lines[this.#index] ?? "";
      const file = FILE.exec(line);
      if (!file && line.trim() !== "") {
        throw fault(
          this.#at,
          `expected "*** Add File:", "*** Update File:" or "*** Delete File:", not ${quoted(line)}`,
        );
      }
      if (!file) this.#index += 1;
      else files.push(this.#file(file[1] ?? "", file[2]?.trim() ?? ""));
    }
    return files;
  }

  /** The line of the patch that comes next, from 1. */
  get #at(): number {
    return this.#offset + this.#index + 1;
  }

  #file(kind: string, path: string): PatchFile {
    const at = this.#at;
    if (path === "") throw fault(at, "a path is missing");
    this.#index += 1;
    if (kind === "Delete") return { type: "delete", at, path };
    if (kind === "Add") return { type: "add", at, path, content: this.#added() };
    const moveTo = MOVE.exec(this.#lines[this.#index] ?? "")?.[1]?.trim();
    if (moveTo === "") throw fault(this.#at, "a path is missing");
    if (moveTo !== undefined) this.#index += 1;
    const hunks = this.#hunks();
    if (hunks.length === 0 && moveTo === undefined) {
      throw fault(at, `"*** Update File: ${path}" is followed by no change`);
    }
    return { type: "update", at, path, hunks, ...(moveTo !== undefined && { moveTo }) };
  }

  #added(): string {
    let content = "";
    for (; this.#index < this.#lines.length; this.#index++) {
      const line = this.#lines[this.#index] ?? "";
      if (FILE.test(line)) break;
      if (line.startsWith("+")) content += `${line.slice(1)}\n`;
      else if (!this.#isGap()) {
        throw fault(
          this.#at,
          `every line of a file that is added starts with "+", not ${quoted(line)}`,
        );
      }
    }
    return content;
  }

  #hunks(): PatchHunk[] {
    const hunks: PatchHunk[] = [];
    while (this.#index < this.#lines.length && !FILE.test(this.#lines[this.#index] ?? "")) {
      if (this.#isGap()) this.#index += 1;
      else hunks.push(this.#hunk());
    }
    return hunks;
  }

  #hunk(): PatchHunk {
    const hunk: PatchHunk = { at: this.#at, headers: [], old: [], next: [], isAtEnd: false };
    for (; this.#index < this.#lines.length; this.#index++) {
      const line = this.#lines[this.#index] ?? "";
      if (!line.startsWith("@@")) break;
      const header = line.slice(2).trim();
      const text = (UNIFIED.exec(header)?.[1] ?? header).trim();
      if (text !== "") hunk.headers.push(text);
    }
    let changes = 0;
    for (; this.#index < this.#lines.length; this.#index++) {
      const line = this.#lines[this.#index] ?? "";
      if (line === END_OF_FILE) {
        hunk.isAtEnd = true;
        this.#index += 1;
        break;
      }
      if (line.startsWith("@@") || FILE.test(line) || this.#isGap()) break;
      const mark = line.charAt(0);
      const text = line.slice(1);
      if (mark !== "" && mark !== " " && mark !== "-" && mark !== "+") {
        throw fault(
          this.#at,
          `a line of a change starts with " ", "-" or "+", not ${quoted(line)}`,
        );
      }
      // A blank line that lost its space is still a blank line.
      if (mark !== "+") hunk.old.push(text);
      if (mark !== "-") hunk.next.push(text);
      if (mark === "+" || mark === "-") changes += 1;
    }
    if (changes === 0)
      throw fault(hunk.at, `this part has no line with "-" or "+": it changes nothing`);
    return hunk;
  }

  /** An empty line with nothing but empty lines before the next part or the end. */
  #isGap(): boolean {
    for (let index = this.#index; index < this.#lines.length; index++) {
      const line = this.#lines[index] ?? "";
      if (line !== "") return index > this.#index && (FILE.test(line) || line.startsWith("@@"));
    }
    return true;
  }
}

function quoted(line: string | undefined): string {
  const MAX = 80;
  if (line === undefined) return "nothing";
  return JSON.stringify(line.length > MAX ? `${line.slice(0, MAX)}...` : line);
}

function fault(at: number, what: string): EditError {
  return new EditError("invalid", `Line ${at} of the patch: ${what}. Nothing was changed.`);
}
