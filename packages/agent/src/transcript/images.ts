import type { Message, UserContent } from "@gyre/ai";

/** Stands where an image was. */
const LEFT_OUT =
  "[An image was here. It is left out, because the request was too large for the service.]";

/**
 * Leaves images out of requests once a service has refused one as too large: first those that the
 * model has answered already, then all.
 */
export class ImageFilter {
  #kept: "all" | "newest" | "none" = "all";
  #sent: readonly Message[] = [];
  readonly #stripped = new WeakMap<Message, Message>();

  /** The messages as they are sent. */
  apply(messages: readonly Message[]): readonly Message[] {
    this.#sent = messages;
    if (this.#kept === "all") return messages;
    const until = this.#kept === "none" ? messages.length : newestFrom(messages);
    return messages.map((message, index) => (index < until ? this.#strip(message) : message));
  }

  /** Leaves out more than before. Returns whether the last request would be smaller for it. */
  narrow(): boolean {
    if (this.#kept === "none") return false;
    const older = this.#sent.slice(0, newestFrom(this.#sent));
    const hasOlder = this.#kept === "all" && older.some(hasImage);
    if (!hasOlder && !this.#sent.some(hasImage)) return false;
    this.#kept = hasOlder ? "newest" : "none";
    return true;
  }

  #strip(message: Message): Message {
    if (!hasImage(message)) return message;
    const known = this.#stripped.get(message);
    if (known) return known;
    const content = imagesAsText(message.content);
    const stripped = { ...message, content };
    this.#stripped.set(message, stripped);
    return stripped;
  }
}

type WithImages = Extract<Message, { role: "user" | "toolResult" }> & { content: UserContent[] };

function hasImage(message: Message): message is WithImages {
  if (message.role === "assistant" || typeof message.content === "string") return false;
  return message.content.some(({ type }) => type === "image");
}

function imagesAsText(content: readonly UserContent[]): UserContent[] {
  return content.map((block) =>
    block.type === "image" ? { type: "text", text: LEFT_OUT } : block,
  );
}

/** Where the messages begin that the model has not answered. */
function newestFrom(messages: readonly Message[]): number {
  return messages.findLastIndex(({ role }) => role === "assistant") + 1;
}
