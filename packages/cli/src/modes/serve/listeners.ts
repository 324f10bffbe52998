import { type Clock, errnoOf, errorMessage, systemClock, toUrl } from "@gyre/ai";
import { type ModelService, ProtocolError, type Transport } from "@gyre/protocol";
import {
  createFileRoutes,
  createStreamRoutes,
  type FileSource,
  type HttpListener,
  type Listener,
  listenHttp,
  listenUrl,
  Metrics,
} from "@gyre/protocol/node";
import { EXIT, ExitError, UsageError } from "../../core/exit-codes.ts";
import { listenHealth } from "./health.ts";
import type { ServeLog } from "./log.ts";
import type { ListenerPlace, ServePlace } from "./options.ts";

/** Statuses of rejected requests, which have a log line of their own. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 429]);
const FIRST_ERROR = 400;

export interface ListenersOptions {
  place: ServePlace;
  token: string;
  models: ModelService;
  /** Has the files of sessions. */
  sessions: FileSource;
  /** Called for each connection, with the name of its transport. */
  serve: (transport: Transport, kind: string) => void;
  log: ServeLog;
  clock?: Clock;
}

/** Everything that a server listens on. */
export interface Listeners {
  readonly http: HttpListener;
  /** Those that `--tcp-port` and `--listen` ask for. */
  readonly others: readonly Listener[];
  /** What `--health-port` asks for. It is closed by itself: it answers while the others drain. */
  readonly health?: Listener;
  readonly metrics: Metrics;
  /** Accepts no more connections. Settles when all have ended; after `graceMs` they are cut off. */
  close(graceMs: number): Promise<void>;
}

/** Opens all listeners or none. Throws one line for people. */
export async function openListeners(options: ListenersOptions): Promise<Listeners> {
  const { place, token, models, sessions, serve, log, clock = systemClock } = options;
  const { host, port, hosts, origins } = place;
  const metrics = new LoggedMetrics(clock, log);
  const onError = (error: unknown, where: string): void => log.error(error, where);
  const shared = { token, metrics, onError, clock };
  // The log names the transport right before the connection is served.
  let kind = "http";
  const http = await withPlainError({ option: "port", host, port }, () =>
    listenHttp({
      ...shared,
      host,
      port,
      hosts,
      origins,
      routes: [...createStreamRoutes(models, { clock }), ...createFileRoutes(sessions)],
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
  const others: Listener[] = [];
  let health: Listener | undefined;
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all([http, ...others].map((listener) => listener.close({ graceMs })));
  };
  try {
    for (const { url, option } of place.listeners) {
      const transport = url.slice(0, url.indexOf(":"));
      const listener = await withPlainError({ option, ...readPlace(url) }, () =>
        listenUrl(url, { ...shared, serve: (each) => serve(each, transport) }),
      );
      others.push(listener);
      log.info({ event: "listen", transport, url: listener.url });
    }
    if (place.health) {
      const { port: healthPort, limitMs } = place.health;
      health = await withPlainError({ option: "health-port", host, port: healthPort }, () =>
        listenHealth({ host, port: healthPort, limitMs, onError }),
      );
      log.info({ event: "listen", transport: "health", url: health.url });
    }
  } catch (error) {
    await close(0);
    throw error;
  }
  return { http, others, metrics, close, ...(health && { health }) };
}

/** Logs every rejected connection, at whichever listener. */
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

/** What a message says of a place that cannot be listened on. */
interface NamedPlace {
  option: ListenerPlace["option"] | "port" | "health-port";
  /** A URL that has no port: what stands after its scheme. */
  path?: string;
  host?: string;
  port?: number;
}

function readPlace(url: string): Omit<NamedPlace, "option"> {
  const parsed = toUrl(url);
  if (!parsed) return {};
  const { hostname, pathname, port } = parsed;
  return hostname === "" ? { path: pathname } : { host: hostname, port: Number(port) };
}

async function withPlainError<T>(place: NamedPlace, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof ProtocolError) {
      throw new UsageError(`--${place.option} ${error.message}`, { cause: error });
    }
    throw new ExitError(EXIT.failed, explainError(error, place), { cause: error });
  }
}

function explainError(error: unknown, { option, path, host = "", port }: NamedPlace): string {
  const code = errnoOf(error);
  if (path !== undefined) {
    if (code === "EADDRINUSE") return `${path} is in use. Choose another with --${option}.`;
    return `${path} cannot be listened on: ${errorMessage(error)}`;
  }
  if (code === "EADDRINUSE") {
    return `Port ${port} of ${host} is in use. Choose another with --${option}, or 0 for a free one.`;
  }
  if (code === "EACCES") {
    return `Port ${port} of ${host} may not be used by you. Choose one above 1023 with --${option}.`;
  }
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    const other = option === "listen" ? option : "host";
    return `"${host}" is not an address of this machine. Choose another with --${other}.`;
  }
  return `${host}, port ${port}, cannot be listened on: ${errorMessage(error)}`;
}
