import { type AgentMessage, listCalls, isLlmMessage } from "@gyre/agent";
import { textOf, errorMessage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import { callText } from "../../../text/tool-text.ts";
import { promptText } from "@gyre/coding/internal/conversation/prompt-text";
import { oneLine } from "@gyre/coding/internal/text/shown-text";

/** Messages that are read at once. */
const MAX_READ_AT_ONCE = 128;
/** Longer lines are truncated. */
const MAX_LINE_CHARS = 500;

/** A message in one line. */
export interface TreeText {
  line: string;
  /** The whole text of a prompt. */
  prompt?: string;
}

/** The texts of messages, read on request, and their labels. */
export class TreeTexts {
  readonly #session: Pick<Session, "read" | "findIds">;
  readonly #changed: () => void;
  /** Null: the tree does not show the message. */
  readonly #known = new Map<number, TreeText | null>();
  readonly #labels = new Map<number, string>();
  #isReading = false;

  constructor(session: Pick<Session, "read" | "findIds">, changed: () => void) {
    this.#session = session;
    this.#changed = changed;
    void this.#readLabels(session.findIds("label"));
  }

  /** Undefined: not read yet. Null: it is not shown. */
  get(id: number): TreeText | null | undefined {
    return this.#known.get(id);
  }

  getLabel(id: number): string | undefined {
    return this.#labels.get(id);
  }

  setLabel(id: number, label: string | null): void {
    if (label === null) this.#labels.delete(id);
    else this.#labels.set(id, oneLine(label));
  }

  /** Reads messages and reports the end. Requests during a read are ignored: the panel repeats them. */
  request(ids: readonly number[]): void {
    if (this.#isReading || ids.length === 0) return;
    this.#isReading = true;
    void this.#read(ids.slice(0, MAX_READ_AT_ONCE));
  }

  async #read(ids: readonly number[]): Promise<void> {
    await Promise.all(ids.map(async (id) => this.#known.set(id, await this.#readText(id))));
    this.#isReading = false;
    this.#changed();
  }

  async #readLabels(ids: readonly number[]): Promise<void> {
    for (const id of ids) {
      try {
        const entry = await this.#session.read(id);
        if (entry.type === "label") this.setLabel(entry.entry, entry.label);
      } catch {
        // A label that cannot be read is left out; its message is still shown.
      }
    }
    if (ids.length > 0) this.#changed();
  }

  async #readText(id: number): Promise<TreeText | null> {
    try {
      const entry = await this.#session.read(id);
      return entry.type === "message" ? summarizeMessage(entry.message) : null;
    } catch (error) {
      return { line: oneLine(`(cannot be read: ${errorMessage(error)})`) };
    }
  }
}

function summarizeMessage(message: AgentMessage): TreeText | null {
  if (!isLlmMessage(message) || message.role === "toolResult") return null;
  const text = message.role === "user" ? promptText(message) : textOf(message);
  const line = readFirstLine(text);
  if (message.role === "user") return { line: line || "(an image)", prompt: text };
  if (line !== "") return { line };
  const [call] = listCalls(message);
  if (call)
    return { line: oneLine(`${call.name} ${callText(call.name, call.arguments).about}`).trim() };
  return { line: readFirstLine(message.errorMessage ?? "") || `(${message.stopReason})` };
}

function readFirstLine(text: string): string {
  const [line = ""] = text.trimStart().split("\n", 1);
  return oneLine(line.slice(0, MAX_LINE_CHARS)).trim();
}
