import { type Clock, systemClock } from "@gyre/ai";
import type { ModelService, Transport } from "@gyre/protocol";
import {
  type HttpListener,
  type Listener,
  listenHttp,
  listenTcp,
  Metrics,
  createStreamRoutes,
} from "@gyre/protocol/node";
import { EXIT, ExitError } from "../../core/exit-codes.ts";
import type { ServeLog } from "./log.ts";
import type { ServePlace } from "./options.ts";

/** Statuses of those who were turned away, which is in the log already. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 429]);
const FIRST_ERROR = 400;

export interface DoorsOptions {
  place: ServePlace;
  token: string;
  models: ModelService;
  /** Called for each connection, with the name of its transport. */
  serve: (transport: Transport, kind: string) => void;
  log: ServeLog;
  clock?: Clock;
}

/** The ports that a server listens on. */
export interface Doors {
  readonly http: HttpListener;
  readonly tcp?: Listener;
  readonly metrics: Metrics;
  /** Nobody comes in any more. Settles when all have left; after `graceMs` they are cut off. */
  close(graceMs: number): Promise<void>;
}

/** Opens all ports or none. Throws one line for people. */
export async function openDoors(options: DoorsOptions): Promise<Doors> {
  const { place, token, models, serve, log, clock = systemClock } = options;
  const { host, port, tcpPort, hosts, origins } = place;
  const metrics = new LoggedMetrics(clock, log);
  const onError = (error: unknown, where: string): void => log.error(error, where);
  const shared = { host, token, metrics, onError, clock };
  // It is told right before the connection is handed over.
  let kind = "http";
  const http = await opening("port", host, port, () =>
    listenHttp({
      ...shared,
      port,
      hosts,
      origins,
      routes: createStreamRoutes(models, { clock }),
      serve: (transport) => serve(transport, kind),
      log: (entry) => {
        if (entry.type === "connected") kind = entry.transport;
        if (entry.type !== "request" || entry.status < FIRST_ERROR) return;
        const { type: _, ...fields } = entry;
        if (!REFUSALS.has(entry.status)) log.info({ event: "http_error", ...fields });
      },
    }),
  );
  log.info({ event: "listen", transport: "http", url: http.url });
  if (tcpPort === undefined) {
    return { http, metrics, close: (graceMs) => http.close({ graceMs }) };
  }
  try {
    const tcp = await opening("tcp-port", host, tcpPort, () =>
      listenTcp({ ...shared, port: tcpPort, serve: (transport) => serve(transport, "tcp") }),
    );
    log.info({ event: "listen", transport: "tcp", host, port: tcp.port });
    const close = async (graceMs: number): Promise<void> => {
      await Promise.all([http.close({ graceMs }), tcp.close({ graceMs })]);
    };
    return { http, tcp, metrics, close };
  } catch (error) {
    await http.close({ graceMs: 0 });
    throw error;
  }
}

/** Whoever is turned away, at whichever port, is in the log. */
class LoggedMetrics extends Metrics {
  readonly #log: ServeLog;

  constructor(clock: Clock, log: ServeLog) {
    super(clock);
    this.#log = log;
  }

  override countRefusal(reason: string): void {
    super.countRefusal(reason);
    this.#log.info({ event: "refused", reason });
  }
}

async function opening<T extends Listener>(
  option: string,
  host: string,
  port: number,
  open: () => Promise<T>,
): Promise<T> {
  try {
    return await open();
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    throw new ExitError(EXIT.failed, problemOf(code, option, host, port, error), { cause: error });
  }
}

function problemOf(
  code: unknown,
  option: string,
  host: string,
  port: number,
  error: unknown,
): string {
  if (code === "EADDRINUSE") {
    return `Port ${port} of ${host} is in use. Choose another with --${option}, or 0 for a free one.`;
  }
  if (code === "EACCES") {
    return `Port ${port} of ${host} may not be used by you. Choose one above 1023 with --${option}.`;
  }
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return `"${host}" is no address of this machine. Choose another with --host.`;
  }
  return `${host}, port ${port}, cannot be listened on: ${String(error)}`;
}
