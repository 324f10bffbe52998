import type { Clock } from "@gyre/ai";
import type { Payload } from "../frames/envelope.ts";
import type { ProtocolError } from "../frames/protocol-error.ts";

/** A request, under the id that it keeps on every connection. */
export interface OutgoingRequest {
  readonly id: string;
  readonly type: string;
  readonly payload: Payload;
  readonly stream?: string;
}

/** The outcome of a request; one of these is called, once. */
export interface RequestOutcome {
  onDone(payload: Payload): void;
  onFailure(error: ProtocolError): void;
  /** The client was connected for the whole timeout, and no answer arrived. */
  onTimeout(): void;
}

/** A request that waits for its answer. */
export interface PendingRequest extends RequestOutcome {
  readonly request: OutgoingRequest;
  /** It belongs to this connection, and is not sent again on another. */
  readonly isOfConnection: boolean;
  /** The numbering that it was sent under; undefined: not sent on this connection. */
  numbering: number | undefined;
  /** How often its number was refused. */
  renumbered: number;
}

interface Waiting extends PendingRequest {
  /** The rest of its timeout, which runs only while the server works on it. */
  leftMs: number | undefined;
  startedAt: number;
  stopTimer: (() => void) | undefined;
}

/** Requests without an answer, in the order in which they were or will be sent. */
export class PendingRequests {
  /** The timeout of requests without one of their own; read when their time begins. */
  timeoutMs: number;
  readonly #clock: Clock;
  readonly #byId = new Map<string, Waiting>();
  /** Sent requests by stream: the server works on the first, the others wait for it. */
  readonly #sent = new Map<string, Set<Waiting>>();

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.timeoutMs = timeoutMs;
  }

  get(id: string): PendingRequest | undefined {
    return this.#byId.get(id);
  }

  add(
    request: OutgoingRequest,
    outcome: RequestOutcome,
    { isOfConnection = false, timeoutMs }: { isOfConnection?: boolean; timeoutMs?: number } = {},
  ): PendingRequest {
    const waiting: Waiting = {
      ...outcome,
      request,
      isOfConnection,
      numbering: undefined,
      renumbered: 0,
      leftMs: timeoutMs,
      startedAt: 0,
      stopTimer: undefined,
    };
    this.#byId.set(request.id, waiting);
    return waiting;
  }

  /** Requests that are still to be sent. */
  listUnsent(): PendingRequest[] {
    return [...this.#byId.values()].filter(({ numbering }) => numbering === undefined);
  }

  /** A request went out. Its time begins when those of its stream before it are answered. */
  markSent(id: string, numbering: number): void {
    const waiting = this.#byId.get(id);
    if (!waiting) return;
    waiting.numbering = numbering;
    const { stream } = waiting.request;
    if (stream === undefined) return this.#start(waiting);
    const row = this.#sent.get(stream) ?? new Set();
    this.#sent.set(stream, row.add(waiting));
    if (row.size === 1) this.#start(waiting);
  }

  /** Removes a request: it is answered, or its caller no longer waits. */
  take(id: string): PendingRequest | undefined {
    const waiting = this.#byId.get(id);
    if (!waiting) return undefined;
    this.#byId.delete(id);
    this.#stop(waiting);
    const { stream } = waiting.request;
    const row = stream === undefined ? undefined : this.#sent.get(stream);
    if (stream === undefined || !row?.delete(waiting)) return waiting;
    const [next] = row;
    if (next) this.#start(next);
    else this.#sent.delete(stream);
    return waiting;
  }

  /** Marks all requests as unsent, and forgets those that belong to the connection. */
  disconnect(): void {
    this.#sent.clear();
    for (const [id, waiting] of this.#byId) {
      this.#stop(waiting);
      waiting.numbering = undefined;
      waiting.renumbered = 0;
      if (waiting.isOfConnection) this.#byId.delete(id);
    }
  }

  /** Removes all requests. */
  takeAll(): PendingRequest[] {
    const all = [...this.#byId.values()];
    this.disconnect();
    this.#byId.clear();
    return all;
  }

  #start(waiting: Waiting): void {
    if (waiting.stopTimer) return;
    waiting.startedAt = this.#clock.now();
    waiting.leftMs ??= this.timeoutMs;
    if (waiting.leftMs === Infinity) return;
    waiting.stopTimer = this.#clock.after(waiting.leftMs, () => {
      this.take(waiting.request.id);
      waiting.onTimeout();
    });
  }

  #stop(waiting: Waiting): void {
    if (!waiting.stopTimer) return;
    waiting.stopTimer();
    waiting.stopTimer = undefined;
    const spentMs = this.#clock.now() - waiting.startedAt;
    waiting.leftMs = Math.max(0, (waiting.leftMs ?? this.timeoutMs) - spentMs);
  }
}
