import type { Envelope, Payload } from "../frames/envelope.ts";
import type { Limits } from "../frames/limits.ts";
import type { ProtocolError } from "../frames/protocol-error.ts";
import type { Transport } from "../transports/base/transport.ts";

/** Opens a way to the server: called for each attempt. Rejects where there is none now. */
export type Connect = (signal: AbortSignal) => Promise<Transport>;

/** How things stand with the server. */
export type ConnectionState =
  | { type: "connecting" }
  | { type: "ready"; server: Payload; limits: Limits }
  /** It is tried again after `delayMs`. */
  | { type: "waiting"; attempt: number; delayMs: number; error: Error }
  | { type: "closed"; error?: Error };

/** What may be said about one request over the wire. */
export interface RequestOptions {
  /** The stream that it belongs to: requests of one stream are answered one after the other. */
  stream?: string;
  /** The idempotency key. Default: a fresh one. */
  id?: string;
  /** Nobody waits for the answer any more; the request itself may have been done. */
  signal?: AbortSignal;
  /** How long the answer may take while connected. Default: what the server promises, and a little. */
  timeoutMs?: number;
}

/** Who follows a stream. None of these may throw. */
export interface StreamListener {
  /** The next frame: its `from` (or `seq`) is the one after the last, or it is a `snapshot`. */
  onFrame(frame: Envelope): void;
  /**
   * There is a new connection, or a frame is missing: the request that takes the stream up
   * again after `last`. Nothing: it is not taken up.
   */
  resume(last: number): { type: string; payload: Payload } | undefined;
  /** It could not be taken up, and is over. */
  onLost(error: ProtocolError): void;
}

/**
 * The asking end of the wire, over connections that come and go. Requests that were not
 * answered are sent again under their ids when there is a new connection, so that each is
 * done once; streams are taken up after their last frame.
 */
export interface WireClientApi {
  readonly state: ConnectionState;
  /** Settles with the payload of the `ack`; rejects with the `ProtocolError` of the `nack`. */
  request(type: string, payload: Payload, options?: RequestOptions): Promise<Payload>;
  /** Follows a stream, whose last known frame is `last` (0: none). What it gives ends that. */
  listen(stream: string, listener: StreamListener, last?: number): () => void;
  /** The stream goes on after `last`: a snapshot stands for all before. */
  skipTo(stream: string, last: number): void;
  /** Says goodbye and stays away. What waits is rejected. */
  close(): Promise<void>;
}
