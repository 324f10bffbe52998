import { connect, createServer, type Socket } from "node:net";
import { type Clock, systemClock } from "@gyre/ai";
import { authorize, withToken } from "../transports/base/authorize.ts";
import { encode, type Envelope, PROTOCOL_VERSION } from "../frames/envelope.ts";
import { CLOSE_GRACE_MS, MAX_CONNECTIONS, MAX_HELLO_BYTES } from "../frames/limits.ts";
import { openStdio } from "./stdio.ts";
import type { Transport, TransportHandler } from "../transports/base/transport.ts";
import { closeServer, type Listener, listenOn, LOOPBACK } from "./listen.ts";
import { Metrics } from "./metrics.ts";
import { createTokenCheck } from "./token.ts";

/** How long a connection is quiet before the system asks whether the other end is there. */
const TCP_KEEP_ALIVE_MS = 30_000;

export interface ConnectTcpOptions {
  /** Default loopback. */
  host?: string;
  port: number;
  /** Travels in `hello`. */
  token?: string;
  /** Gives up connecting; an open connection is not touched by it. */
  signal?: AbortSignal;
  maxFrameBytes?: number;
  clock?: Clock;
}

export interface ListenTcpOptions {
  /** Default loopback. */
  host?: string;
  /** Default: a free one. */
  port?: number;
  token: string;
  /** Called for each connection whose `hello` had the token. */
  serve: (transport: Transport) => void;
  /** Default `MAX_CONNECTIONS`. */
  maxConnections?: number;
  maxFrameBytes?: number;
  metrics?: Metrics;
  /** Trouble of the listening itself. */
  onError?: (error: unknown, where: string) => void;
  clock?: Clock;
}

/** A connection over TCP: one frame a line. Rejects where nobody listens. */
export async function connectTcp(options: ConnectTcpOptions): Promise<Transport> {
  const { host = LOOPBACK, port, token, signal } = options;
  signal?.throwIfAborted();
  const socket = connect({ host, port });
  const onAbort = (): unknown => socket.destroy(new Error("Connecting was given up."));
  signal?.addEventListener("abort", onAbort, { once: true });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject);
      resolve();
    });
  }).finally(() => signal?.removeEventListener("abort", onAbort));
  const transport = new TcpTransport(socket, options);
  return token === undefined ? transport : withToken(transport, token);
}

/** Listens for connections over TCP. */
export async function listenTcp(options: ListenTcpOptions): Promise<Listener> {
  const { host = LOOPBACK, port = 0, serve, maxConnections = MAX_CONNECTIONS } = options;
  const { clock = systemClock, metrics = new Metrics(clock), onError } = options;
  const check = createTokenCheck(options.token);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    if (sockets.size >= maxConnections) {
      metrics.countRefusal("connections");
      socket.on("error", ignore);
      socket.end(`${encode(createGoodbye(clock.now()))}\n`, () => socket.destroy());
      return;
    }
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    metrics.countSocket(socket);
    const transport = new TcpTransport(socket, { ...options, firstFrameBytes: MAX_HELLO_BYTES });
    authorize(transport, (known) => serve(metrics.countFrames(known, "tcp")), {
      check,
      clock,
      onRefused: () => metrics.countRefusal("token"),
    });
  });
  const bound = await listenOn(server, host, port);
  server.on("error", (error) => onError?.(error, "listening"));
  return {
    host,
    port: bound,
    close: ({ graceMs } = {}) => closeServer(server, sockets, clock, graceMs),
  };
}

interface TcpOptions {
  maxFrameBytes?: number;
  firstFrameBytes?: number;
  clock?: Clock;
}

/** The lines of stdio, on a socket that is ended and in the end destroyed by this. */
class TcpTransport implements Transport {
  readonly #socket: Socket;
  readonly #lines: Transport;
  readonly #clock: Clock;
  #stop: (() => void) | undefined;

  constructor(socket: Socket, { maxFrameBytes, firstFrameBytes, clock = systemClock }: TcpOptions) {
    this.#socket = socket;
    this.#clock = clock;
    socket.setNoDelay(true);
    // A peer that vanished without a word is found by the system.
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
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
    await this.#closed();
  }

  /** No more goes out after what is there; who does not end their side in time is cut off. */
  #end(): void {
    if (this.#stop || this.#socket.destroyed) return;
    this.#stop = this.#clock.after(CLOSE_GRACE_MS, () => this.#socket.destroy());
    this.#socket.end();
  }

  /** What still comes is for nobody, but the end is behind it. */
  #drain(): void {
    this.#socket.resume();
  }

  #closed(): Promise<void> {
    if (this.#socket.closed) return Promise.resolve();
    return new Promise((resolve) => this.#socket.once("close", () => resolve()));
  }
}

function ignore(): void {}

function createGoodbye(ts: number): Envelope {
  return { v: PROTOCOL_VERSION, type: "goodbye", id: "r_0", ts, payload: { reason: "full" } };
}
