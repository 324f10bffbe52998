import type { Connection } from "../server/connection.ts";
import type { LoggedEvent } from "../messages/event-log.ts";
import type { ModelStream } from "./model-stream.ts";
import { ProtocolError } from "../frames/protocol-error.ts";

/** How a connection gets a stream. */
export interface FollowOptions {
  /** Called before the first event is sent. */
  ack?: () => void;
  /** Sends no events: the connection only waits for the end. */
  isSilent?: boolean;
}

/** The streams of one connection: those that it gets, and the last of those that have ended. */
export class ConnectionStreams {
  readonly #connection: () => Connection;
  readonly #max: number;
  readonly #following = new Map<string, () => void>();
  /**
   * Ended streams. Their numbers are still counted, as a request may be on its way. They make room
   * for new ones.
   */
  readonly #over = new Map<string, () => void>();

  constructor(connection: () => Connection, max: number) {
    this.#connection = connection;
    this.#max = max;
  }

  /** Sends the events after `after`, and those that follow. Throws `too_many_streams`. */
  follow(stream: ModelStream, after: number, { ack, isSilent }: FollowOptions = {}): void {
    const { id } = stream;
    const connection = this.#connection();
    // A connection that was closed meanwhile would never be detached.
    if (connection.isClosed) return;
    const leave = this.#following.get(id) ?? this.#over.get(id);
    if (!this.#following.has(id) && !stream.isEnded && this.#following.size >= this.#max) {
      const what = `A connection has at most ${this.#max} streams.`;
      throw new ProtocolError("too_many_streams", what);
    }
    let isAcked = false;
    const acknowledge = (): void => {
      if (!isAcked) ack?.();
      isAcked = true;
    };
    const detach = stream.attach(after, (event) => {
      acknowledge();
      if (!isSilent) send(connection, id, event);
      if (event.type === "done" || event.type === "error") this.#end(id);
    });
    acknowledge();
    leave?.();
    this.#over.delete(id);
    this.#following.set(id, detach);
    if (stream.isEnded) this.#end(id);
    this.#makeRoom();
  }

  /** Counts a name that a request used without getting the stream. */
  note(id: string): void {
    if (this.#following.has(id) || this.#over.has(id)) return;
    this.#over.set(id, () => {});
    this.#makeRoom();
  }

  /** Drops a stream whose request failed. */
  drop(id: string): void {
    this.#end(id);
    this.note(id);
  }

  /** Detaches from all streams. */
  close(): void {
    for (const detach of [...this.#following.values(), ...this.#over.values()]) detach();
    this.#following.clear();
    this.#over.clear();
  }

  #end(id: string): void {
    const detach = this.#following.get(id);
    if (!detach) return;
    this.#following.delete(id);
    this.#over.set(id, detach);
    this.#makeRoom();
  }

  /** Forgets the oldest ended streams, so that there is always room for a new one. */
  #makeRoom(): void {
    for (const id of this.#over.keys()) {
      if (this.#following.size + this.#over.size < this.#max) return;
      this.#over.delete(id);
      this.#connection().forget(id);
    }
  }
}

function send(connection: Connection, stream: string, event: LoggedEvent): void {
  const { type, payload, bytes } = event;
  // A snapshot is for this connection alone, and stands for all events up to its number.
  if (type === "snapshot") connection.send({ type, stream, payload }, bytes);
  else connection.sendEvent(stream, event);
}
