const MIB = 1024 * 1024;

/** The longest frame, in bytes of UTF-8, without the LF that ends it on a line. */
export const MAX_FRAME_BYTES: number = 16 * MIB;
/** Objects and lists in one frame: in memory each is many times as long as its two brackets. */
export const MAX_FRAME_PARTS = 1_000_000;
/** Streams that one connection may have. */
export const MAX_STREAMS = 100;
/** Connections that one server may have. */
export const MAX_CONNECTIONS = 1000;
/** A request that is not answered by then gets `timeout`. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** A stream on which nothing happens for so long is ended. */
export const IDLE_STREAM_MS = 300_000;
/** What is kept of a stream for those who come back: so many events, or so many bytes. */
export const TAIL_EVENTS = 4096;
/** What is kept of a stream for those who come back, in bytes. */
export const TAIL_BYTES: number = 4 * MIB;
/** How long a stream without a client runs on. Sessions: no limit. */
export const ORPHAN_TTL_MS = 60_000;
/** What may wait for a reader that lags. Past it, the connection is closed. */
export const MAX_WAITING_BYTES: number = 64 * MIB;
/** Requests of one connection that wait for their answer. */
export const MAX_WAITING_REQUESTS = 1000;
/** Answers that are kept, so that a message that is sent again gets its first one. */
export const MAX_KEPT_ANSWERS = 65_536;
/** And what they may have together, in UTF-16 code units of their JSON. */
export const MAX_KEPT_ANSWER_CHARS: number = 4 * MIB;
/** The length of an id or the name of a stream, in UTF-16 code units. */
export const MAX_ID_CHARS = 128;
/** The length of the name of a type, in UTF-16 code units. */
export const MAX_TYPE_CHARS = 64;
/** A joined delta does not grow beyond this, in UTF-16 code units. */
export const MAX_JOINED_CHARS = 65_536;

/** Who has not said `hello` by then is sent away, where the token comes with it. */
export const HELLO_TIMEOUT_MS = 10_000;
/** The longest first line of somebody who is not known yet, in bytes. */
export const MAX_HELLO_BYTES: number = 64 * 1024;
/** What a connection may hold in its buffers before its sender is asked to wait, in bytes. */
export const MAX_BUFFERED_BYTES: number = MIB;
/** A connection that was closed here and does not end by itself within this is cut. */
export const CLOSE_GRACE_MS = 10_000;
/** An event stream without news has a comment so often. */
export const KEEP_ALIVE_MS = 15_000;
/** A connection over HTTP whose event stream is away for so long is gone. */
export const EVENTS_AWAY_MS = 30_000;
/** What is kept of an event stream, for a client whose stream broke off, in bytes. */
export const EVENTS_TAIL_BYTES: number = 256 * 1024;
/** The longest body of a request with frames, in bytes. Each line has the limit of a frame. */
export const MAX_BODY_BYTES: number = 64 * MIB;

/** What a server tells of its limits in `ready`. */
export interface Limits {
  frameBytes: number;
  streams: number;
  requestTimeoutMs: number;
  tailEvents: number;
  tailBytes: number;
}

/** The limits of a server that is told no others. */
export const LIMITS: Limits = {
  frameBytes: MAX_FRAME_BYTES,
  streams: MAX_STREAMS,
  requestTimeoutMs: REQUEST_TIMEOUT_MS,
  tailEvents: TAIL_EVENTS,
  tailBytes: TAIL_BYTES,
};
