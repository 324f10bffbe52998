import { type Clock, systemClock } from "@gyre/ai";
import { encode, type Envelope, tooLargeError } from "../frames/envelope.ts";
import { Inbox } from "./base/inbox.ts";
import { CLOSE_GRACE_MS, MAX_BUFFERED_BYTES, MAX_FRAME_BYTES } from "../frames/limits.ts";
import { invalidRequest, ProtocolError } from "../frames/protocol-error.ts";
import type { Transport, TransportHandler } from "./base/transport.ts";

/** The WebSocket subprotocol of frames. */
export const WEBSOCKET_PROTOCOL = "gyre.v1";
/** A subprotocol that carries the token, as base64url: a browser can set no header. */
export const TOKEN_PROTOCOL_PREFIX = "gyre.token.";

/** How often a full buffer is checked: sockets of browsers have no event for it. */
const BUFFER_LOOK_MS = 10;

/** The `readyState` of a socket that is not open yet, and of one that is. */
const CONNECTING = 0;
const OPEN = 1;

const NORMAL_CLOSURE = 1000;
const GOING_AWAY = 1001;
const TOO_LARGE_CLOSURE = 1009;

/** The part of a WebSocket that is used: that of browsers, Node 22 and later, and `ws` fit. */
export interface WebSocketLike {
  readonly readyState: number;
  /** Absent where the runtime does not say. */
  readonly bufferedAmount?: number;
  send(data: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: "open", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "error", listener: (event: object) => void): void;
  addEventListener(
    type: "close",
    listener: (event: { code: number; reason: string }) => void,
  ): void;
}

/** A class of sockets: the global `WebSocket`, or that of `ws`. */
export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike;

export interface WebSocketOptions {
  /** Sent as a subprotocol, never in the URL. */
  token?: string;
  /** Default: the global one; Node 20 has none. */
  WebSocket?: WebSocketConstructor;
  /** Aborts opening; an open connection ignores it. */
  signal?: AbortSignal;
  maxFrameBytes?: number;
  clock?: Clock;
}

/** Options of a transport over a socket that is there already. */
export type SocketTransportOptions = Pick<WebSocketOptions, "clock" | "maxFrameBytes">;

/** Opens a WebSocket. Rejects where that fails; browsers do not report why. */
export async function openWebSocket(
  url: string,
  options: WebSocketOptions = {},
): Promise<Transport> {
  const { token, WebSocket = globalThis.WebSocket, signal, clock = systemClock } = options;
  // The types have it; Node 20 does not.
  if (typeof WebSocket !== "function") {
    throw new Error(
      "There is no WebSocket here. Pass one as an option, or use connectWebSocket of @gyre/protocol/node.",
    );
  }
  signal?.throwIfAborted();
  const protocols = [WEBSOCKET_PROTOCOL];
  if (token !== undefined) protocols.push(TOKEN_PROTOCOL_PREFIX + encodeBase64Url(token));
  const socket: WebSocketLike = new WebSocket(url, protocols);
  const { maxFrameBytes = MAX_FRAME_BYTES } = options;
  const transport = createSocketTransport(socket, { clock, maxFrameBytes });
  await waitForOpen(socket, signal);
  return transport;
}

/** A socket of a browser or another web runtime as a transport, on either end. */
export function createSocketTransport(
  socket: WebSocketLike,
  { clock = systemClock, maxFrameBytes = MAX_FRAME_BYTES }: SocketTransportOptions = {},
): Transport {
  const opened =
    socket.readyState === CONNECTING &&
    new Promise<void>((resolve) => socket.addEventListener("open", resolve));
  const write = (text: string): void | Promise<void> => {
    // A runtime may open the socket after the response to its upgrade.
    if (opened && socket.readyState === CONNECTING) return opened.then(() => socket.send(text));
    socket.send(text);
    if (isFull(socket)) return waitForRoom(socket, clock);
  };
  return new WebSocketTransport(socket, { write, clock, maxFrameBytes });
}

function isFull({ bufferedAmount = 0 }: WebSocketLike): boolean {
  return bufferedAmount > MAX_BUFFERED_BYTES;
}

/** A token as base64url of its UTF-8. */
export function encodeBase64Url(token: string): string {
  const binary = String.fromCharCode(...new TextEncoder().encode(token));
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Settles when the socket is open. Rejects where it closes before, or the signal fires. */
export function waitForOpen(socket: WebSocketLike, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(readReason(signal));
      socket.close();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    let reason = "";
    socket.addEventListener("error", (event) => (reason = readMessage(event)));
    socket.addEventListener("open", () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    socket.addEventListener("close", ({ code }) => {
      signal?.removeEventListener("abort", onAbort);
      reject(
        new Error(`The WebSocket could not be opened: ${reason || `closed with code ${code}`}.`),
      );
    });
  });
}

async function waitForRoom(socket: WebSocketLike, clock: Clock): Promise<void> {
  // A closed socket never empties its buffer.
  while (socket.readyState === OPEN && isFull(socket)) {
    await new Promise<void>((resolve) => clock.after(BUFFER_LOOK_MS, resolve));
  }
}

/** How a socket is written to and ended. */
export interface WebSocketTransportOptions {
  /** Sends a text. A promise settles when the socket can take more. */
  write: (text: string) => void | Promise<void>;
  /** Cuts a socket that does not end by itself. */
  cut?: () => void;
  maxFrameBytes?: number;
  clock?: Clock;
}

/** A WebSocket as a transport, on either end: one text message for each frame. */
export class WebSocketTransport implements Transport {
  readonly #socket: WebSocketLike;
  readonly #options: WebSocketTransportOptions;
  readonly #maxBytes: number;
  readonly #inbox = new Inbox();
  readonly #ended: Promise<void>;
  #end: () => void = () => {};
  #isOver = false;

  constructor(socket: WebSocketLike, options: WebSocketTransportOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#maxBytes = options.maxFrameBytes ?? MAX_FRAME_BYTES;
    this.#ended = new Promise((resolve) => (this.#end = resolve));
    socket.addEventListener("message", ({ data }) => this.#take(data));
    // The close event that follows reports other errors.
    socket.addEventListener("error", (event) => this.#onError(event));
    socket.addEventListener("close", ({ code, reason }) =>
      this.#onClose(toCloseError(code, reason)),
    );
  }

  send(envelope: Envelope): void | Promise<void> {
    const text = encode(envelope, this.#maxBytes);
    if (this.#isOver) return undefined;
    const wait = this.#options.write(text);
    // A closed socket ends the wait.
    if (wait) return Promise.race([wait, this.#ended]);
  }

  receive(handler: TransportHandler): void {
    this.#inbox.open(handler);
  }

  async close(): Promise<void> {
    if (this.#inbox.isClosed) return;
    this.#isOver = true;
    const { clock = systemClock, cut } = this.#options;
    const stop = clock.after(CLOSE_GRACE_MS, () => {
      cut?.();
      this.#onClose();
    });
    this.#socket.close(NORMAL_CLOSURE);
    await this.#ended;
    stop();
  }

  #take(data: unknown): void {
    if (this.#isOver) return;
    if (typeof data === "string") return this.#inbox.read(data, this.#maxBytes);
    this.#inbox.onFault(invalidRequest("A frame is text, not binary."));
  }

  /** `ws` reports a frame above its limit as an error, and then closes. */
  #onError(event: object): void {
    const error = "error" in event ? event.error : undefined;
    if (!(error instanceof Error) || !("code" in error)) return;
    if (error.code !== "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH") return;
    this.#inbox.onFault(tooLargeError(this.#maxBytes));
  }

  #onClose(error?: Error): void {
    this.#isOver = true;
    this.#end();
    this.#inbox.onClose(error);
  }
}

function toCloseError(code: number, reason: string): Error | undefined {
  if (code === NORMAL_CLOSURE || code === GOING_AWAY) return undefined;
  if (code === TOO_LARGE_CLOSURE) {
    return new ProtocolError("too_large", reason || "The other end does not take so long a frame.");
  }
  const words = reason ? ` (${reason})` : "";
  return new Error(`The WebSocket was closed with code ${code}${words}.`);
}

function readMessage(event: object): string {
  return "message" in event && typeof event.message === "string" ? event.message : "";
}

function readReason(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error("Opening was aborted.");
}
