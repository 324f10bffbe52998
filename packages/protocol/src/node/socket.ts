import { createServer, type ListenOptions as Place, type Server, type Socket } from "node:net";
import { type Clock, systemClock } from "@gyre/ai";
import { encode, type Envelope, PROTOCOL_VERSION } from "../frames/envelope.ts";
import { CLOSE_GRACE_MS, MAX_CONNECTIONS, MAX_HELLO_BYTES } from "../frames/limits.ts";
import { authorize, withToken } from "../transports/base/authorize.ts";
import type { Transport, TransportHandler } from "../transports/base/transport.ts";
import { closeServer, type ListenOptions, listenOn } from "./base/listen.ts";
import { Metrics } from "./base/metrics.ts";
import { Newcomers } from "./base/newcomers.ts";
import { openStdio } from "./stdio.ts";
import { createTokenCheck } from "./base/token.ts";

/** After this time without traffic the system asks whether the other end is still there. */
const SOCKET_KEEP_ALIVE_MS = 30_000;

export interface OpenSocketOptions {
  /** Sent in `hello`. */
  token?: string;
  /** Aborts connecting; an open connection ignores it. */
  signal?: AbortSignal;
  maxFrameBytes?: number;
  clock?: Clock;
}

/** A socket that connects, as a transport: one frame a line. Rejects where it cannot connect. */
export async function openSocket(socket: Socket, options: OpenSocketOptions): Promise<Transport> {
  const { signal, token } = options;
  const onAbort = (): unknown => socket.destroy(new Error("Connecting was aborted."));
  signal?.addEventListener("abort", onAbort, { once: true });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve();
    });
  }).finally(() => signal?.removeEventListener("abort", onAbort));
  const transport = new SocketTransport(socket, options);
  return token === undefined ? transport : withToken(transport, token);
}

/**
 * Accepts sockets, on a port or a path, and serves those whose `hello` has the token. It counts
 * them in `metrics` under the name of the transport, `kind`.
 */
export class SocketServer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #options: ListenOptions;
  readonly #clock: Clock;

  constructor(kind: string, options: ListenOptions) {
    const { clock = systemClock, maxConnections = MAX_CONNECTIONS, serve } = options;
    const { metrics = new Metrics(clock) } = options;
    const check = createTokenCheck(options.token);
    const newcomers = new Newcomers(maxConnections, () => metrics.countRefusal("sockets"));
    this.#options = options;
    this.#clock = clock;
    this.#server = createServer((socket) => {
      if (this.#sockets.size - newcomers.size >= maxConnections) {
        metrics.countRefusal("connections");
        return refuse(socket, clock.now());
      }
      this.#sockets.add(socket);
      newcomers.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      metrics.countSocket(socket);
      const limits = { ...options, firstFrameBytes: MAX_HELLO_BYTES };
      const transport = new SocketTransport(socket, limits);
      const onKnown = (known: Transport): void => {
        newcomers.accept(socket);
        serve(metrics.countFrames(known, kind));
      };
      const onRefused = (): void => metrics.countRefusal("token");
      authorize(transport, onKnown, { check, clock, onRefused });
    });
  }

  /** Settles with the port, or 0 for a path. Rejects where the place cannot be listened on. */
  async listen(place: Place): Promise<number> {
    const port = await listenOn(this.#server, place);
    this.#server.on("error", (error) => this.#options.onError?.(error, "listening"));
    return port;
  }

  /** As `close` of a `Listener`. */
  readonly close = ({ graceMs }: { graceMs?: number } = {}): Promise<void> =>
    closeServer(this.#server, this.#sockets, this.#clock, graceMs);
}

function refuse(socket: Socket, ts: number): void {
  const reason = { reason: "full" };
  const goodbye = { v: PROTOCOL_VERSION, type: "goodbye", id: "r_0", ts, payload: reason };
  // A client that goes away first has nothing to read any more.
  socket.on("error", () => socket.destroy());
  socket.end(`${encode(goodbye)}\n`, () => socket.destroy());
}

interface SocketTransportOptions {
  maxFrameBytes?: number;
  firstFrameBytes?: number;
  clock?: Clock;
}

/** Lines of frames on a socket that this transport ends and finally destroys. */
class SocketTransport implements Transport {
  readonly #socket: Socket;
  readonly #lines: Transport;
  readonly #clock: Clock;
  #stop: (() => void) | undefined;

  constructor(socket: Socket, options: SocketTransportOptions) {
    const { maxFrameBytes, firstFrameBytes, clock = systemClock } = options;
    this.#socket = socket;
    this.#clock = clock;
    socket.setNoDelay(true);
    // The system notices a peer that vanished without closing its end.
    socket.setKeepAlive(true, SOCKET_KEEP_ALIVE_MS);
    this.#lines = openStdio({
      input: socket,
      output: socket,
      ...(maxFrameBytes !== undefined && { maxFrameBytes }),
      ...(firstFrameBytes !== undefined && { firstFrameBytes }),
    });
    socket.once("close", () => this.#stop?.());
  }

  send(envelope: Envelope): void | Promise<void> {
    if (!this.#stop) return this.#lines.send(envelope);
  }

  receive(handler: TransportHandler): void {
    this.#lines.receive({
      onFrame: (envelope) => handler.onFrame(envelope),
      onFault: (error) => handler.onFault(error),
      onClose: (error) => {
        this.#end();
        this.#drain();
        handler.onClose(error);
      },
    });
  }

  async close(): Promise<void> {
    this.#end();
    await this.#lines.close();
    this.#drain();
    await this.#waitForClose();
  }

  /** Sends the end after everything that waits. A peer that does not end its side in time is cut off. */
  #end(): void {
    if (this.#stop || this.#socket.destroyed) return;
    this.#stop = this.#clock.after(CLOSE_GRACE_MS, () => this.#socket.destroy());
    this.#socket.end();
  }

  /** Reads what still arrives and drops it: the end of the stream is behind it. */
  #drain(): void {
    this.#socket.resume();
  }

  #waitForClose(): Promise<void> {
    if (this.#socket.closed) return Promise.resolve();
    return new Promise((resolve) => this.#socket.once("close", () => resolve()));
  }
}
