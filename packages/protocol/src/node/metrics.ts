import type { Socket } from "node:net";
import { type Clock, systemClock } from "@gyre/ai";
import type { Transport, TransportHandler } from "../transports/base/transport.ts";

const MS_A_SECOND = 1000;

/** A number that somebody else knows, read when it is asked for. */
export interface Gauge {
  /** As Prometheus has names: `gyre_streams`. */
  name: string;
  help: string;
  read: () => number;
}

/** What went through the listeners of a server, as text for Prometheus. */
export class Metrics {
  readonly #clock: Clock;
  readonly #since: number;
  readonly #gauges: Gauge[] = [];
  readonly #connections = new Map<string, number>();
  readonly #refused = new Map<string, number>();
  readonly #frames = { in: 0, out: 0 };
  /** Of sockets that are closed. */
  readonly #bytes = { in: 0, out: 0 };
  readonly #sockets = new Set<Socket>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  /** The sockets that are open. */
  get sockets(): ReadonlySet<Socket> {
    return this.#sockets;
  }

  add(gauge: Gauge): void {
    this.#gauges.push(gauge);
  }

  /** Somebody was turned away. */
  refused(reason: string): void {
    this.#refused.set(reason, (this.#refused.get(reason) ?? 0) + 1);
  }

  /** Counts the bytes of a socket. */
  socket(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#bytes.in += socket.bytesRead;
      this.#bytes.out += socket.bytesWritten;
    });
  }

  /** A transport whose frames are counted, and itself until it is closed. */
  counted(transport: Transport, kind: string, onClosed?: () => void): Transport {
    const add = (by: number): unknown =>
      this.#connections.set(kind, (this.#connections.get(kind) ?? 0) + by);
    add(1);
    return {
      send: (envelope) => {
        const wait = transport.send(envelope);
        this.#frames.out++;
        return wait;
      },
      receive: (handler: TransportHandler) =>
        transport.receive({
          frame: (envelope) => {
            this.#frames.in++;
            handler.frame(envelope);
          },
          fault: (error) => handler.fault(error),
          closed: (error) => {
            add(-1);
            onClosed?.();
            handler.closed(error);
          },
        }),
      close: () => transport.close(),
    };
  }

  /** All of it, in the text format of Prometheus. */
  text(): string {
    let { in: read, out: written } = this.#bytes;
    for (const socket of this.#sockets) {
      read += socket.bytesRead;
      written += socket.bytesWritten;
    }
    const uptime = (this.#clock.now() - this.#since) / MS_A_SECOND;
    return [
      ...metric("gyre_uptime_seconds", "gauge", "Since the server started.", [["", uptime]]),
      ...metric(
        "gyre_connections",
        "gauge",
        "Connections that are open.",
        labelled("transport", this.#connections),
      ),
      ...metric("gyre_frames_total", "counter", "Frames that came and went.", [
        ['{direction="in"}', this.#frames.in],
        ['{direction="out"}', this.#frames.out],
      ]),
      ...metric("gyre_bytes_total", "counter", "Bytes on the sockets.", [
        ['{direction="in"}', read],
        ['{direction="out"}', written],
      ]),
      ...metric(
        "gyre_refused_total",
        "counter",
        "Who was turned away.",
        labelled("reason", this.#refused),
      ),
      ...this.#gauges.flatMap(({ name, help, read: value }) =>
        metric(name, "gauge", help, [["", value()]]),
      ),
      "",
    ].join("\n");
  }
}

type Sample = readonly [labels: string, value: number];

function labelled(label: string, values: ReadonlyMap<string, number>): Sample[] {
  return [...values].map(([name, value]) => [`{${label}="${name}"}`, value]);
}

function metric(
  name: string,
  type: "gauge" | "counter",
  help: string,
  samples: readonly Sample[],
): string[] {
  const lines = samples.map(([labels, value]) => `${name}${labels} ${value}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines];
}
