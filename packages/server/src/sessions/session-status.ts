import type { AgentMessage, QueueName } from "@gyre/agent";
import { type Connection, type Payload } from "@gyre/protocol";
import type { SessionView } from "./session-agent.ts";

/** Of the text of a queued message: a view shows a row of it. */
const MAX_WAITING_CHARS = 2_000;

/** A queued message in the status of a session. */
export interface WaitingMessage {
  queue: QueueName;
  id: string;
  /** `user`, unless the program itself has queued it. */
  role: string;
  /** Its beginning, where it is long. */
  text: string;
}

export interface SessionStatusOptions {
  stream: string;
  read: () => Payload;
  onError: (error: unknown, where: string) => void;
}

/**
 * What clients show beside the conversation, sent to those that asked for it: all of it whenever it has changed, and
 * without a number. One that is missed is followed by the next, or comes again when the client attaches.
 */
export class SessionStatus {
  readonly #options: SessionStatusOptions;
  readonly #watchers = new Set<Connection>();
  #sent = "";
  #isDue = false;

  constructor(options: SessionStatusOptions) {
    this.#options = options;
  }

  /** Sends it to a client now, and from now on. */
  watch(connection: Connection): void {
    this.#watchers.add(connection);
    const status = this.#read();
    if (status) this.#send(connection, status);
  }

  unwatch(connection: Connection): void {
    this.#watchers.delete(connection);
  }

  /** Something may have changed. Changes of one moment are sent together. */
  refresh(): void {
    if (this.#isDue || this.#watchers.size === 0) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      const before = this.#sent;
      const status = this.#read();
      if (!status || this.#sent === before) return;
      for (const connection of this.#watchers) this.#send(connection, status);
    });
  }

  #read(): Payload | undefined {
    try {
      const status = this.#options.read();
      this.#sent = JSON.stringify(status);
      return status;
    } catch (error) {
      this.#options.onError(error, `the status of session ${this.#options.stream}`);
      return undefined;
    }
  }

  #send(connection: Connection, payload: Payload): void {
    connection.send({ type: "session_status", stream: this.#options.stream, payload });
  }
}

/** The queued messages, in the order in which they are delivered. */
export function listWaiting(view: Pick<SessionView, "queued">): WaitingMessage[] {
  return (["steering", "followUp"] as const).flatMap((queue) =>
    view.queued(queue).map(({ id, message }) => ({
      ...{ queue, id, role: message.role },
      text: readText(message).slice(0, MAX_WAITING_CHARS),
    })),
  );
}

function readText(message: AgentMessage): string {
  if (message.role !== "user") return "";
  const { content } = message;
  if (typeof content === "string") return content;
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}
