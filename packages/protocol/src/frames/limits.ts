const MIB = 1024 * 1024;

/** The longest frame, in bytes of UTF-8, without the LF that ends it on a line. */
export const MAX_FRAME_BYTES: number = 16 * MIB;
/** Objects and lists in one frame: in memory each is many times as long as its two brackets. */
export const MAX_FRAME_PARTS = 1_000_000;
/** Streams that one connection may have. */
export const MAX_STREAMS = 100;
/** Connections that one server may have. */
export const MAX_CONNECTIONS = 1000;
/** The timeout of a request at the server. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** A response without content for this long ends. */
export const IDLE_STREAM_MS = 900_000;
/** How many events of a stream are kept for clients that resume it. */
export const TAIL_EVENTS = 4096;
/** How much of a stream is kept for clients that resume it, in bytes. */
export const TAIL_BYTES: number = 4 * MIB;
/** How long a stream without a client continues. Sessions: no limit. */
export const ORPHAN_TTL_MS = 60_000;
/** How much may wait for a slow reader, in bytes. Above it, the connection is closed. */
export const MAX_WAITING_BYTES: number = 64 * MIB;
/** Requests of one connection that wait for their answer. */
export const MAX_WAITING_REQUESTS = 1000;
/** How many answers are kept, so that a repeated request gets its first answer. */
export const MAX_KEPT_ANSWERS = 65_536;
/** How long these answers may be together, in UTF-16 code units of their JSON. */
export const MAX_KEPT_ANSWER_CHARS: number = 4 * MIB;
/** The length of an id or the name of a stream, in UTF-16 code units. */
export const MAX_ID_CHARS = 128;
/** The length of the name of a type, in UTF-16 code units. */
export const MAX_TYPE_CHARS = 64;
/** A joined delta does not grow beyond this, in UTF-16 code units. */
export const MAX_JOINED_CHARS = 65_536;

/** The timeout of `hello`, where it carries the token. */
export const HELLO_TIMEOUT_MS = 10_000;
/** The longest first line of a client that has not sent the token yet, in bytes. */
export const MAX_HELLO_BYTES: number = 64 * 1024;
/** How much a connection buffers before its sender has to wait, in bytes. */
export const MAX_BUFFERED_BYTES: number = MIB;
/** A closed connection whose other end does not end within this time is cut. */
export const CLOSE_GRACE_MS = 10_000;
/** How often an event stream without events gets a comment. */
export const KEEP_ALIVE_MS = 15_000;
/** A connection over HTTP without an event stream for this long is closed. */
export const EVENTS_AWAY_MS = 30_000;
/** How much of an event stream is kept for a client whose stream broke off, in bytes. */
export const EVENTS_TAIL_BYTES: number = 256 * 1024;
/** The longest body of a request with frames, in bytes. Each line has the limit of a frame. */
export const MAX_BODY_BYTES: number = 64 * MIB;

/** The limits that a server reports in `ready`. */
export interface Limits {
  frameBytes: number;
  streams: number;
  requestTimeoutMs: number;
  tailEvents: number;
  tailBytes: number;
}

/** The default limits of a server. */
export const LIMITS: Limits = {
  frameBytes: MAX_FRAME_BYTES,
  streams: MAX_STREAMS,
  requestTimeoutMs: REQUEST_TIMEOUT_MS,
  tailEvents: TAIL_EVENTS,
  tailBytes: TAIL_BYTES,
};
