import type { Envelope, Payload } from "../frames/envelope.ts";
import type { Limits } from "../frames/limits.ts";
import type { ProtocolError } from "../frames/protocol-error.ts";
import type { Transport } from "../transports/base/transport.ts";

/** Opens a transport to the server: called for each attempt. Rejects where it cannot. */
export type Connect = (signal: AbortSignal) => Promise<Transport>;

/** The state of the connection to the server. */
export type ConnectionState =
  | { type: "connecting" }
  | { type: "ready"; server: Payload; limits: Limits }
  /** The client reconnects after `delayMs`. */
  | { type: "waiting"; attempt: number; delayMs: number; error: Error }
  | { type: "closed"; error?: Error };

/** Options of one request. */
export interface RequestOptions {
  /** The stream that it belongs to: requests of one stream are answered one after the other. */
  stream?: string;
  /** The idempotency key. Default: a fresh one. */
  id?: string;
  /** Aborts the wait for the answer; the server may have done the request. */
  signal?: AbortSignal;
  /** How long the answer may take while connected; `Infinity`: as long as it needs. Default: the timeout of the server, and a little more. */
  timeoutMs?: number;
}

/** Gets the frames of a stream. None of these may throw. */
export interface StreamListener {
  /** The next frame: its `from` (or `seq`) is the one after the last, or it is a `snapshot`. */
  onFrame(frame: Envelope): void;
  /**
   * Called on a new connection, and when a frame is missing: returns the request that resumes the
   * stream after `last`. Undefined: the stream is not resumed.
   */
  resume(last: number): { type: string; payload: Payload } | undefined;
  /** The stream could not be resumed and has ended. */
  onLost(error: ProtocolError): void;
}

/**
 * The client's end of the wire, over connections that come and go. On a new connection, requests
 * without an answer are sent again under their ids, so that each is done once, and streams are
 * resumed after their last frame.
 */
export interface WireClientApi {
  readonly state: ConnectionState;
  /** Calls `listener` with each state from now on. The returned function ends that. */
  watch(listener: (state: ConnectionState) => void): () => void;
  /** Settles with the payload of the `ack`; rejects with the `ProtocolError` of the `nack`. */
  request(type: string, payload: Payload, options?: RequestOptions): Promise<Payload>;
  /** Listens to a stream, whose last known frame is `last` (0: none). The returned function stops listening. */
  listen(stream: string, listener: StreamListener, last?: number): () => void;
  /** Continues the stream after `last`: a snapshot stands for everything before. */
  skipTo(stream: string, last: number): void;
  /** Sends `goodbye` and does not reconnect. Pending requests are rejected. */
  close(): Promise<void>;
}
