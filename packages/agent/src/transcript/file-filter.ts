import type { Message, UserContent } from "@gyre/ai";

/** Stands where an image or a file was. */
const LEFT_OUT = "was here. It is left out, because the request was too large for the service.]";

/**
 * Leaves images and files out of requests once a service has refused one as too large: first those that the
 * model has answered already, then all.
 */
export class FileFilter {
  #kept: "all" | "newest" | "none" = "all";
  readonly #stripped = new WeakMap<Message, Message>();

  /** The messages as they are sent. */
  apply(messages: readonly Message[]): readonly Message[] {
    if (this.#kept === "all") return messages;
    const until = this.#kept === "none" ? messages.length : newestFrom(messages);
    return messages.map((message, index) => (index < until ? this.#strip(message) : message));
  }

  /** Leaves out more than before. Returns whether a request with `sent` would be smaller for it. */
  narrow(sent: readonly Message[]): boolean {
    if (this.#kept === "none") return false;
    const older = sent.slice(0, newestFrom(sent));
    const hasOlder = this.#kept === "all" && older.some(hasFile);
    if (!hasOlder && !sent.some(hasFile)) return false;
    this.#kept = hasOlder ? "newest" : "none";
    return true;
  }

  #strip(message: Message): Message {
    if (!hasFile(message)) return message;
    const known = this.#stripped.get(message);
    if (known) return known;
    const content = filesAsText(message.content);
    const stripped = { ...message, content };
    this.#stripped.set(message, stripped);
    return stripped;
  }
}

type WithFiles = Extract<Message, { role: "user" | "toolResult" }> & { content: UserContent[] };

function hasFile(message: Message): message is WithFiles {
  if (message.role === "assistant" || typeof message.content === "string") return false;
  return message.content.some(({ type }) => type !== "text");
}

function filesAsText(content: readonly UserContent[]): UserContent[] {
  return content.map((block) => {
    if (block.type === "text") return block;
    const what = block.type === "image" ? "An image" : `The file ${block.name ?? block.mediaType}`;
    return { type: "text", text: `[${what} ${LEFT_OUT}` };
  });
}

/** Where the messages begin that the model has not answered. */
function newestFrom(messages: readonly Message[]): number {
  return messages.findLastIndex(({ role }) => role === "assistant") + 1;
}
