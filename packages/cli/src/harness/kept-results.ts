import { type AgentMessage, isLlmMessage } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import type { Session } from "@gyre/sessions";

/** What a long result is kept as in a session. */
const KIND = "kept";

/** Where results are looked for that are whole in the conversation itself. */
export interface KeptSources {
  session(): Session | undefined;
  messages(): readonly AgentMessage[];
}

/**
 * The whole of long results of which a short form is sent, by key. What the conversation has
 * whole is not kept a second time; what it has not goes into the session, or stays in memory
 * where nothing is written down.
 */
export class KeptResults {
  readonly #sources: KeptSources;
  readonly #texts = new Map<string, string>();

  constructor(sources: KeptSources) {
    this.#sources = sources;
  }

  /** Keeps a text; tells the model how to read it back. */
  async keep(key: string, text: string): Promise<string> {
    const session = this.#sources.session();
    if (this.#spoken(key) !== text && this.#texts.get(key) !== text) {
      if (session) await session.append({ type: "custom", kind: KIND, data: { key, text } });
      else this.#texts.set(key, text);
    }
    return `read it with the path "kept:${key}"`;
  }

  async read(key: string): Promise<string | undefined> {
    // What was kept goes first: of such a result the conversation has the short form.
    return this.#texts.get(key) ?? (await this.#written(key)) ?? this.#spoken(key);
  }

  #spoken(key: string): string | undefined {
    const found = this.#sources
      .messages()
      .findLast(
        (message) =>
          isLlmMessage(message) &&
          message.role === "toolResult" &&
          keyOf(message.toolCallId) === key,
      );
    return found && isLlmMessage(found) ? textOf(found) : undefined;
  }

  /** From the newest on: an agent reads back what it has just been told of. */
  async #written(key: string): Promise<string | undefined> {
    const session = this.#sources.session();
    if (!session) return undefined;
    let whole: string | undefined;
    for (const id of session.findIds("custom", "result").toReversed()) {
      const entry = await session.read(id);
      if (entry.type === "custom" && entry.kind === KIND && isKept(entry.data, key)) {
        return entry.data.text;
      }
      if (entry.type === "result" && keyOf(entry.toolCallId) === key) {
        whole ??= textOf(entry.result);
      }
    }
    return whole;
  }
}

/** As the agent makes keys of ids. */
function keyOf(toolCallId: string): string {
  return toolCallId.replaceAll(/[^\w-]/g, "_");
}

function isKept(data: unknown, key: string): data is { key: string; text: string } {
  if (typeof data !== "object" || data === null) return false;
  return "key" in data && data.key === key && "text" in data && typeof data.text === "string";
}
