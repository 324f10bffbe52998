import { closeSync, fdatasyncSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/** What happened outside of the store. */
export type JournalLine =
  /** A worker has claimed a session whose log ended with `seq`. */
  | { at: "claim"; session: string; token: number; seq: number; worker: string }
  /** A model is asked for the answer of this index. */
  | { at: "ask"; session: string; token: number; index: number }
  | ({ at: "begin" } & Effect)
  | ({ at: "end"; nonce: string } & Effect)
  /** A worker has reported an error, other than that its store is away. */
  | { at: "error"; where: string; message: string };

interface Effect {
  session: string;
  token: number;
  call: string;
  tool: string;
  /** What an idempotent tool would give to the other side. */
  key: string;
}

/** The effects of one process: a file that no crash of the process or of the store undoes. */
export class Journal {
  readonly #file: number;
  readonly #isSynced: boolean;

  constructor(path: string, options: { sync?: boolean } = {}) {
    this.#file = openSync(path, "a");
    this.#isSynced = options.sync ?? false;
  }

  write(line: JournalLine): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
    if (this.#isSynced) fdatasyncSync(this.#file);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** The lines of all journals in a folder. The order holds within a process alone. */
export function readJournals(folder: string): JournalLine[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => parseLines(readFileSync(join(folder, name), "utf8")));
}

/** A process may be killed in the middle of its last line: that effect had not begun. */
function parseLines(text: string): JournalLine[] {
  const end = text.lastIndexOf("\n");
  return end < 0
    ? []
    : text
        .slice(0, end)
        .split("\n")
        .map((line): JournalLine => JSON.parse(line));
}
