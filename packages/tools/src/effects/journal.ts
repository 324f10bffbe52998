import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { isRecord } from "@gyre/ai";
import type { BytePath } from "./byte-path.ts";
import type { FileRecord } from "./effect.ts";

/** A file or link that is made by a step: under a temporary name first. */
export interface NewFile {
  path: BytePath;
  temporary: BytePath;
  /** Of a file. */
  mode: number;
  size: number;
  /** Where a link leads. */
  link?: BytePath;
}

/** One step of keeping a layer, written down before it is taken. `backup`: a name in the backup. */
export type Step =
  /** What is at the path goes into the backup. */
  | { do: "remove"; path: BytePath; backup: string }
  | { do: "folder"; path: BytePath }
  | ({ do: "create" } & NewFile)
  | ({ do: "modify"; backup: string } & NewFile)
  | { do: "mode"; path: BytePath; was: number; mode: number };

/** What is in the journal of a layer. */
export interface Journal {
  /** `open`: keeping or undoing was cut off. */
  state: "open" | "kept" | "undone";
  steps: readonly Step[];
  /** By path, what keeping has made: known when all of it is kept. */
  made?: ReadonlyMap<BytePath, FileRecord>;
}

const JOURNAL = "journal";

/** Writes what is done to the files of a workspace. A step is on the disk before it is taken. */
export class JournalWriter {
  readonly #handle: number;

  constructor(layer: string) {
    this.#handle = openSync(join(layer, JOURNAL), "ax", 0o600);
    fsyncFolder(layer);
  }

  plan(steps: readonly Step[]): void {
    this.#write(steps.map((step) => JSON.stringify(step)));
  }

  /** All of it is kept. */
  end(made: ReadonlyMap<BytePath, FileRecord>): void {
    this.#write([JSON.stringify({ made: [...made] })]);
  }

  close(): void {
    closeSync(this.#handle);
  }

  #write(lines: readonly string[]): void {
    writeSync(this.#handle, lines.map((line) => `${line}\n`).join(""));
    fsyncSync(this.#handle);
  }
}

/** From now on the layer is neither kept nor undone. */
export function beginUndo(layer: string): void {
  append(layer, { undoing: true });
}

/** All that a journal says is undone. */
export function endUndo(layer: string): void {
  append(layer, { undone: true });
}

function append(layer: string, entry: Readonly<Record<string, boolean>>): void {
  const handle = openSync(join(layer, JOURNAL), "a");
  try {
    // A line before it may have been cut off.
    writeSync(handle, `\n${JSON.stringify(entry)}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function fsyncFolder(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** The journal of a layer; undefined where nothing of it was ever kept. */
export function readJournal(layer: string): Journal | undefined {
  const path = join(layer, JOURNAL);
  if (!existsSync(path)) return undefined;
  const lines = readFileSync(path, "utf8").split("\n");
  // What is after the last line break was not written whole, and so not acted on.
  lines.pop();
  const steps: Step[] = [];
  let made: Map<BytePath, FileRecord> | undefined;
  let state: Journal["state"] = "open";
  for (const line of lines) {
    const entry = parseLine(line);
    if (entry === undefined) continue;
    if (!isRecord(entry)) throw new Error(`The journal ${path} is damaged.`);
    // Only we write here, in a folder that is closed to others.
    if ("made" in entry) {
      made = new Map(entry["made"] as [BytePath, FileRecord][]);
      state = "kept";
    } else if ("undoing" in entry) {
      made = undefined;
      state = "open";
    } else if ("undone" in entry) state = "undone";
    else steps.push(entry as unknown as Step);
  }
  return { state, steps, ...(made && { made }) };
}

/** Nothing for a line that was cut off: what it says was not acted on. */
function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
