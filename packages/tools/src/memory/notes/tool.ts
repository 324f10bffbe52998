import { estimateTokens } from "@gyre/ai";
import type { GuardedTool } from "../../contract/access.ts";
import { defineEntryTool } from "../../contract/define-tool.ts";
import { grouped, textResult } from "../../text/text.ts";
import { notesEntry } from "./entry.ts";

/** What the notes of an agent may take of each request, estimated. */
export const MAX_NOTE_TOKENS = 4_000;

/** Called with the whole text at each change; a change is done when all have settled. */
export type NotesListener = (text: string) => void | Promise<void>;

/**
 * What an agent wants to have in sight whatever is left out of its context. One for an
 * agent: the program shows it to the model, and writes it down with the session.
 */
export class NotePad {
  #text: string;
  readonly #listeners = new Set<NotesListener>();

  constructor(text = "") {
    this.#text = text;
  }

  /** "": nothing was noted. */
  get text(): string {
    return this.#text;
  }

  /** Takes what was noted before, without notifying listeners. */
  restore(text: string): void {
    this.#text = text;
  }

  /**
   * Puts a text in the place of the one before, and waits for the listeners. Throws on one
   * that is too long; rejects with what a listener threw, and then all is as it was.
   */
  async replace(text: string): Promise<void> {
    const tokens = Math.ceil(estimateTokens(text));
    if (tokens > MAX_NOTE_TOKENS) {
      throw new RangeError(
        `Notes are at most ${grouped(MAX_NOTE_TOKENS)} tokens; these are about ${grouped(tokens)}. Keep what matters, and write files for the rest.`,
      );
    }
    const before = this.#text;
    this.#text = text;
    try {
      for (const listener of [...this.#listeners]) await listener(text);
    } catch (error) {
      this.#text = before;
      throw error;
    }
  }

  /** The answer takes it back. */
  onChange(listener: NotesListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }
}

const parameters = {
  type: "object",
  properties: { text: { type: "string" } },
} as const;

/** A tool by which an agent reads and rewrites `pad`. */
export function notesTool(pad: NotePad = new NotePad()): GuardedTool {
  return defineEntryTool(notesEntry, {
    label: "Notes",
    description:
      "Your scratch-pad, kept when old turns are left out. Text replaces all of it; none shows it.",
    parameters,
    idempotent: true,
    async execute({ text }) {
      if (text === undefined) return textResult(pad.text || "There are no notes.");
      await pad.replace(text.trim());
      const tokens = Math.ceil(estimateTokens(pad.text));
      return textResult(`Noted: about ${grouped(tokens)} of ${grouped(MAX_NOTE_TOKENS)} tokens.`);
    },
    access({ text }) {
      const summary = text === undefined ? "Reads its notes." : "Rewrites its notes.";
      return { kind: "none", targets: [], summary };
    },
  });
}
