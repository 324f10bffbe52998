import type { Socket } from "node:net";
import { type Clock, systemClock } from "@gyre/ai";
import type { Transport, TransportHandler } from "../../transports/base/transport.ts";

const MS_A_SECOND = 1000;

/** A number that another part of the program knows, read with each report. */
export interface Gauge {
  /** In the form of Prometheus: `gyre_streams`. */
  name: string;
  help: string;
  read: () => number;
}

/** Counts what passes the listeners of a server, for Prometheus. */
export class Metrics {
  readonly #clock: Clock;
  readonly #since: number;
  readonly #gauges: Gauge[] = [];
  readonly #sources: (() => Promise<string>)[] = [];
  readonly #connections = new Map<string, number>();
  readonly #refused = new Map<string, number>();
  readonly #frames = { in: 0, out: 0 };
  /** Bytes of closed sockets. */
  readonly #bytes = { in: 0, out: 0 };
  readonly #sockets = new Set<Socket>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
    this.#since = clock.now();
  }

  /** The open sockets. */
  get sockets(): ReadonlySet<Socket> {
    return this.#sockets;
  }

  add(gauge: Gauge): void {
    this.#gauges.push(gauge);
  }

  /** Adds metrics of another part of the program, in the text format of Prometheus. */
  addSource(read: () => Promise<string>): void {
    this.#sources.push(read);
  }

  /** All counters, and what the sources have; one that fails is reported and left out. */
  async collect(report: (error: unknown) => void): Promise<string> {
    const texts = await Promise.all(
      this.#sources.map((read) =>
        read().catch((error: unknown) => {
          report(error);
          return "";
        }),
      ),
    );
    return [this.format(), ...texts].join("");
  }

  /** Counts a rejected connection or request. */
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

  /** Counts a transport until it is closed, and its frames. */
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

  /** All counters in the text format of Prometheus. */
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
        "Rejected connections and requests.",
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
