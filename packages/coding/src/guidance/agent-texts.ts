import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { defaultSessionFolder } from "@gyre/sessions";
import { toRecord } from "@gyre/ai";
import { readSmallFile } from "../settings/file.ts";
import { oneLine } from "../settings/problem.ts";
import type { Environment } from "../core/environment.ts";

const OWNER_ONLY = 0o600;
const OWNER_ONLY_FOLDER = 0o700;
/** Of what a file held before; a longer text is shown whole, without what is different. */
const MAX_BEFORE_CHARS = 128 * 1024;

/** What is known of a text that an agent wrote. */
export interface AgentText {
  /** Where the agent wrote it, absolute. */
  readonly path: string;
  /** What was there before, if that is known. */
  readonly before?: string;
}

/** A text for agents that is not used: an agent wrote it, and the user has not seen it. */
export interface HeldText extends AgentText {
  /** Where it is now, absolute. */
  readonly path: string;
  /** Of an instruction file: the name that the model reads. */
  readonly name?: string;
  readonly content: Buffer;
}

/** Where the records of this user are: beside the sessions. */
export function agentTextFolder(env: Environment): string {
  return join(dirname(defaultSessionFolder(env)), "agent-texts");
}

/** Where it is noted which calls run that may write such texts. */
export function callNoteFolder(env: Environment): string {
  return join(dirname(defaultSessionFolder(env)), "agent-calls");
}

/** What is compared instead of a text. */
export function hashText(content: Uint8Array | string): string {
  return createHash("sha256").update(content).digest("hex");
}

/**
 * Which texts for agents (instruction files, skills) an agent wrote itself. A record is found by
 * the content, so that a file that is moved is still known, and one that the user has edited since
 * is not. It is there until the user has accepted the text.
 */
export class AgentTexts {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Whether there is no record at all. */
  get isEmpty(): boolean {
    try {
      return readdirSync(this.#folder).length === 0;
    } catch {
      // It was never made, or cannot be read: nothing was recorded by this user.
      return true;
    }
  }

  /** Throws where it cannot be written. */
  add(content: Uint8Array, { path, before }: AgentText): void {
    mkdirSync(this.#folder, { recursive: true, mode: OWNER_ONLY_FOLDER });
    const isKept = before !== undefined && before.length <= MAX_BEFORE_CHARS;
    const text = JSON.stringify({ path, ...(isKept && { before }) });
    writeFileSync(this.#place(content, path), text, { mode: OWNER_ONLY });
  }

  /** What is known of the text at a path, absolute, with all links followed. */
  find(content: Uint8Array, at: string): AgentText | undefined {
    const read = readSmallFile(this.#place(content, at));
    if (!read) return undefined;
    // A record that cannot be read is one all the same.
    if ("problem" in read) return { path: "" };
    const { path, before } = readRecord(read.content);
    return {
      path: typeof path === "string" ? path : "",
      ...(typeof before === "string" && { before }),
    };
  }

  /** The user has seen the text. Throws where that cannot be written down. */
  accept(content: Uint8Array, at: string): void {
    rmSync(this.#place(content, at), { force: true });
  }

  /** Of an empty file the place counts: there it may take precedence over another. */
  #place(content: Uint8Array, path: string): string {
    const known = content.length > 0 ? content : `empty: ${path}`;
    return join(this.#folder, hashText(known));
  }
}

function readRecord(content: Buffer): Readonly<Record<string, unknown>> {
  try {
    return toRecord(JSON.parse(content.toString("utf8")));
  } catch (error) {
    // A write that was cut off: that there is a record is what counts.
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** One line about a text that is left out. */
export function describeHeld({ path }: HeldText): string {
  return oneLine(
    `${path} is left out: an agent changed it, and you have not accepted that. To see and accept it: gyre trust`,
  );
}
