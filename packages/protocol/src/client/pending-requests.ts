import type { Clock } from "@gyre/ai";
import type { Payload } from "../frames/envelope.ts";
import type { ProtocolError } from "../frames/protocol-error.ts";

/** What is asked, under the id that it keeps on every connection. */
export interface OutgoingRequest {
  readonly id: string;
  readonly type: string;
  readonly payload: Payload;
  readonly stream?: string;
}

/** What comes of a request; one of these is called, once. */
export interface RequestOutcome {
  onDone(payload: Payload): void;
  onFailure(error: ProtocolError): void;
  /** There was a connection for all of its time, and no answer. */
  onTimeout(): void;
}

/** A request that waits for its answer. */
export interface PendingRequest extends RequestOutcome {
  readonly request: OutgoingRequest;
  /** It means nothing on another connection, and is not sent again. */
  readonly isOfConnection: boolean;
  /** The numbering that it was sent under; nothing: not sent on this connection. */
  numbering: number | undefined;
  /** How often its number was refused. */
  renumbered: number;
}

interface Waiting extends PendingRequest {
  /** What is left of its time, which passes only while its answer can be due. */
  leftMs: number | undefined;
  startedAt: number;
  stopTimer: (() => void) | undefined;
}

/** Requests without an answer, in the order in which they were or will be sent. */
export class PendingRequests {
  /** How long each may take that has no time of its own; read when its time begins. */
  timeoutMs: number;
  readonly #clock: Clock;
  readonly #byId = new Map<string, Waiting>();
  /** Those that were sent, by stream: the first is worked on, the others wait for it. */
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

  /** Those that are still to be sent. */
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

  /** Takes a request out: it is answered, or nobody waits any more. */
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

  /** The connection is gone: all are unsent, and those that were of it are forgotten. */
  disconnect(): void {
    this.#sent.clear();
    for (const [id, waiting] of this.#byId) {
      this.#stop(waiting);
      waiting.numbering = undefined;
      waiting.renumbered = 0;
      if (waiting.isOfConnection) this.#byId.delete(id);
    }
  }

  /** Takes all out. */
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
