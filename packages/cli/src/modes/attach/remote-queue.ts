import type { QueueName } from "@gyre/agent";
import type { UserContent } from "@gyre/ai";
import type { RemoteAgent } from "@gyre/server/client";
import { userText } from "@gyre/coding/internal/conversation/prompt-text";
import type { ConversationQueue, Waiting } from "@gyre/coding/internal/conversation/queue";
import type { WaitingMessage } from "./remote-status.ts";

/** What is sent: a text, with pictures and files after it. */
export interface SentMessage {
  text: string;
  attachments: readonly UserContent[];
}

export interface RemoteQueueOptions {
  remote: () => RemoteAgent;
  /** As the server has reported it. */
  waiting: () => readonly WaitingMessage[];
  /** Sends something that must not be done twice, and again where it was not done. */
  send: (message: SentMessage, send: () => Promise<unknown>) => Promise<void>;
  changed: () => void;
}

/** The messages that wait for an agent on a server. */
export class RemoteQueue implements ConversationQueue {
  readonly #options: RemoteQueueOptions;
  /** Those that the server has not answered for yet. */
  readonly #unsent = new Set<Waiting>();

  constructor(options: RemoteQueueOptions) {
    this.#options = options;
  }

  list(): readonly Waiting[] {
    const known = this.#options
      .waiting()
      .filter(({ role }) => role === "user")
      .map(({ queue, id, text }) => ({ queue, id, text }));
    const isKnown = (sent: Waiting): boolean =>
      known.some(({ queue, text }) => queue === sent.queue && sent.text.startsWith(text));
    return [...known, ...[...this.#unsent].filter((sent) => !isKnown(sent))];
  }

  async add(queue: QueueName, message: Parameters<ConversationQueue["add"]>[1]): Promise<void> {
    const sent = readMessage(message);
    const { text, attachments } = sent;
    const waiting: Waiting = { queue, id: "", text };
    this.#unsent.add(waiting);
    this.#options.changed();
    try {
      await this.#options.send(sent, () => {
        const remote = this.#options.remote();
        const options = attachments.length > 0 ? { attachments } : {};
        return queue === "steering" ? remote.steer(text, options) : remote.followUp(text, options);
      });
    } finally {
      this.#unsent.delete(waiting);
      this.#options.changed();
    }
  }

  async take(): Promise<readonly string[]> {
    const remote = this.#options.remote();
    const waiting = this.#options.waiting().filter(({ role }) => role === "user");
    // One that was delivered meanwhile is not in its queue any more.
    const taken = await Promise.all(waiting.map(({ queue, id }) => remote.takeQueued(queue, id)));
    return taken.flatMap((message) =>
      message?.role === "user" ? [userText(message.content)] : [],
    );
  }
}

/** A message of the user as a text and what follows it. */
export function readMessage(message: Parameters<ConversationQueue["add"]>[1]): SentMessage {
  if (typeof message === "string") return { text: message, attachments: [] };
  if (message.role !== "user") return { text: "", attachments: [] };
  if (typeof message.content === "string") return { text: message.content, attachments: [] };
  const texts = message.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const attachments = message.content.filter((block) => block.type !== "text");
  return { text: texts.join("\n"), attachments };
}
