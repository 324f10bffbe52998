import { type AgentMessage, isLlmMessage } from "@gyre/agent";
import { textOf, type ToolResultMessage } from "@gyre/ai";
import type { Session } from "@gyre/sessions";

/** The kind of custom entry that holds a long result in a session. */
const KIND = "kept";

/**
 * The whole of long results of which a short form is sent, by key. A result that the
 * conversation has whole is not stored a second time; any other goes into the session, or
 * stays in memory where there is no session.
 */
export class OffloadedResults {
  readonly #log: { readonly session: Session | undefined };
  readonly #texts = new Map<string, string>();
  /** Results of the conversation, by key. */
  readonly #messages = new Map<string, ToolResultMessage>();

  constructor(
    log: { readonly session: Session | undefined },
    messages: readonly AgentMessage[] = [],
  ) {
    this.#log = log;
    for (const message of messages) this.observe(message);
  }

  /** Must be called with each message of the conversation. */
  observe(message: AgentMessage): void {
    if (!isLlmMessage(message) || message.role !== "toolResult") return;
    this.#messages.set(toKey(message.toolCallId), message);
  }

  /** Stores a text. Returns the line that explains to the model how to read it back. */
  async store(key: string, text: string): Promise<string> {
    const { session } = this.#log;
    if (this.#inConversation(key) !== text && this.#texts.get(key) !== text) {
      if (session) await session.append({ type: "custom", kind: KIND, data: { key, text } });
      else this.#texts.set(key, text);
    }
    return `read it with the path "kept:${key}"`;
  }

  async read(key: string): Promise<string | undefined> {
    // What was stored takes precedence: of such a result the conversation has the short form.
    return this.#texts.get(key) ?? (await this.#inSession(key)) ?? this.#inConversation(key);
  }

  #inConversation(key: string): string | undefined {
    const message = this.#messages.get(key);
    return message && textOf(message);
  }

  /** From the newest on: an agent mostly reads what it has just got in short. */
  async #inSession(key: string): Promise<string | undefined> {
    const { session } = this.#log;
    if (!session) return undefined;
    let whole: string | undefined;
    for (const id of session.findIds("custom", "result").toReversed()) {
      const entry = await session.read(id);
      if (entry.type === "custom" && entry.kind === KIND && isStored(entry.data, key)) {
        return entry.data.text;
      }
      if (entry.type === "result" && toKey(entry.toolCallId) === key) {
        whole ??= textOf(entry.result);
      }
    }
    return whole;
  }
}

/** As the agent makes keys of ids. */
function toKey(toolCallId: string): string {
  return toolCallId.replaceAll(/[^\w-]/g, "_");
}

function isStored(data: unknown, key: string): data is { key: string; text: string } {
  if (typeof data !== "object" || data === null) return false;
  return "key" in data && data.key === key && "text" in data && typeof data.text === "string";
}
