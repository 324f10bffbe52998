import type { Socket } from "node:net";
import { type Clock, systemClock } from "@gyre/ai";
import type { Transport, TransportHandler } from "../../transports/base/transport.ts";

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
  countRefusal(reason: string): void {
    this.#refused.set(reason, (this.#refused.get(reason) ?? 0) + 1);
  }

  /** Counts the bytes of a socket. */
  countSocket(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      this.#bytes.in += socket.bytesRead;
      this.#bytes.out += socket.bytesWritten;
    });
  }

  /** A transport whose frames are counted, and itself until it is closed. */
  countFrames(transport: Transport, kind: string, onClosed?: () => void): Transport {
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
          onFrame: (envelope) => {
            this.#frames.in++;
            handler.onFrame(envelope);
          },
          onFault: (error) => handler.onFault(error),
          onClose: (error) => {
            add(-1);
            onClosed?.();
            handler.onClose(error);
          },
        }),
      close: () => transport.close(),
    };
  }

  /** All of it, in the text format of Prometheus. */
  format(): string {
    let { in: read, out: written } = this.#bytes;
    for (const socket of this.#sockets) {
      read += socket.bytesRead;
      written += socket.bytesWritten;
    }
    const uptime = (this.#clock.now() - this.#since) / MS_A_SECOND;
    return [
      ...formatMetric("gyre_uptime_seconds", "gauge", "Since the server started.", [["", uptime]]),
      ...formatMetric(
        "gyre_connections",
        "gauge",
        "Connections that are open.",
        withLabel("transport", this.#connections),
      ),
      ...formatMetric("gyre_frames_total", "counter", "Frames that came and went.", [
        ['{direction="in"}', this.#frames.in],
        ['{direction="out"}', this.#frames.out],
      ]),
      ...formatMetric("gyre_bytes_total", "counter", "Bytes on the sockets.", [
        ['{direction="in"}', read],
        ['{direction="out"}', written],
      ]),
      ...formatMetric(
        "gyre_refused_total",
        "counter",
        "Who was turned away.",
        withLabel("reason", this.#refused),
      ),
      ...this.#gauges.flatMap(({ name, help, read: value }) =>
        formatMetric(name, "gauge", help, [["", value()]]),
      ),
      "",
    ].join("\n");
  }
}

type Sample = readonly [labels: string, value: number];

function withLabel(label: string, values: ReadonlyMap<string, number>): Sample[] {
  return [...values].map(([name, value]) => [`{${label}="${name}"}`, value]);
}

function formatMetric(
  name: string,
  type: "gauge" | "counter",
  help: string,
  samples: readonly Sample[],
): string[] {
  const lines = samples.map(([labels, value]) => `${name}${labels} ${value}`);
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines];
}
