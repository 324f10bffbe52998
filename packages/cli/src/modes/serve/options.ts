import { hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import { toUrl } from "@gyre/ai";
import { defaultSessionFolder } from "@gyre/sessions";
import { resolveFileUrl } from "../../core/database.ts";
import { UsageError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import { type OptionName, PORT_OPTIONS, type Values } from "../../core/options.ts";

/** Where clients look for a server by default. */
export const DEFAULT_PORT = 7420;
/** How long what runs may go on after the program was asked to end. */
export const DEFAULT_DRAIN_MS = 10_000;
/** How long a session without a client stays open. */
export const DEFAULT_IDLE_MS = 900_000;
/** How old the newest turn of the main loop may be for `/healthz` to say that all is well. */
export const DEFAULT_HEALTH_LIMIT_MS = 10_000;
/** Below that, a healthy server would be reported as one that hangs. */
const MIN_HEALTH_LIMIT_MS = 1000;
const DEFAULT_HOST = "127.0.0.1";
const MAX_PORT = 65_535;
const MS_PER_SECOND = 1000;
/** Longer than any timer of Node can wait is no time to wait for. */
const MAX_SECONDS = 86_400;

/** A place to listen at, beside HTTP, and the option that asks for it. */
export interface ListenerPlace {
  url: string;
  option: "tcp-port" | "listen";
}

/** Where a server listens, and which clients it accepts. */
export interface ServePlace {
  host: string;
  /** 0: a free one. */
  port: number;
  listeners: readonly ListenerPlace[];
  /** Where `/healthz` is answered by a thread of its own. */
  health?: { port: number; limitMs: number };
  /** Absolute. */
  tokenFile: string;
  hosts: readonly string[];
  origins: readonly string[];
}

/** What the command line says of a server. */
export interface ServeOptions {
  /** Nothing: stdin and stdout. */
  place?: ServePlace;
  drainMs: number;
  idleMs: number;
  isQuiet: boolean;
  /** Whether clients may send keys of their own. */
  clientKeys?: boolean;
  /** Where sessions are kept, with other servers. Absent: in files. */
  database?: ServeDatabase;
}

/** A database that servers share. */
export interface ServeDatabase {
  url: string;
  /** Whether this server works on runs. */
  isWorker: boolean;
  /** What its sessions are bound to. */
  pool: string;
}

/** Reads it. Throws `UsageError`. */
export function serveOptions(values: Values, { cwd, env }: Pick<Io, "cwd" | "env">): ServeOptions {
  const shared = {
    drainMs: parseSeconds("drain", values.drain, DEFAULT_DRAIN_MS),
    idleMs: parseSeconds("idle", values.idle, DEFAULT_IDLE_MS),
    isQuiet: values.quiet ?? false,
    ...(values["client-keys"] && { clientKeys: true }),
    ...readDatabase(values, cwd),
  };
  if (values.stdio) {
    const other = PORT_OPTIONS.find((name) => values[name] !== undefined);
    if (other) throw new UsageError(`--stdio has no port: --${other} means nothing there.`);
    return shared;
  }
  const host = parseAddress(values.host ?? DEFAULT_HOST);
  const listeners = readListeners(values, host);
  if (shared.clientKeys) assertOnlyLoopback(host, listeners);
  const file = values["token-file"];
  const health = readHealth(values);
  return {
    ...shared,
    place: {
      host,
      port: values.port === undefined ? DEFAULT_PORT : parsePort("port", values.port),
      listeners,
      ...(health && { health }),
      tokenFile: file === undefined ? defaultTokenFile(env) : resolve(cwd, file),
      hosts: (values["allow-host"] ?? []).map(parseHost),
      origins: (values["allow-origin"] ?? []).map(parseOrigin),
    },
  };
}

function readDatabase(values: Values, cwd: string): Pick<ServeOptions, "database"> {
  const { database: url, pool, worker, "no-worker": noWorker } = values;
  if (url === undefined) {
    const other = (["worker", "no-worker", "pool"] as const).find(
      (name) => values[name] !== undefined,
    );
    if (other) throw new UsageError(`--${other} is for --database.`);
    return {};
  }
  if (worker && noWorker) throw new UsageError("--worker and --no-worker contradict each other.");
  if (pool === "") throw new UsageError('--pool "" must be a name, such as host:build-1.');
  if (values["no-session"]) {
    throw new UsageError("--no-session writes nothing down, and --database does.");
  }
  return {
    database: {
      url: resolveFileUrl(url, cwd),
      isWorker: !noWorker,
      pool: pool ?? `host:${hostname()}`,
    },
  };
}

/** `--tcp-port` is short for `--listen tcp://HOST:N`. */
function readListeners(values: Values, host: string): ListenerPlace[] {
  const { listen = [], "tcp-port": tcpPort } = values;
  const urls = listen.map((url): ListenerPlace => ({ url, option: "listen" }));
  if (tcpPort === undefined) return urls;
  const port = parsePort("tcp-port", tcpPort);
  const name = host.includes(":") ? `[${host}]` : host;
  return [{ url: `tcp://${name}:${port}`, option: "tcp-port" }, ...urls];
}

function readHealth(values: Values): ServePlace["health"] {
  const { "health-port": port, "health-limit": limit } = values;
  if (port === undefined && limit === undefined) return undefined;
  if (port === undefined) throw new UsageError("--health-limit is for --health-port.");
  const limitMs = parseSeconds("health-limit", limit, DEFAULT_HEALTH_LIMIT_MS);
  if (limitMs < MIN_HEALTH_LIMIT_MS) {
    throw new UsageError(`--health-limit "${limit}" must be a second or more.`);
  }
  return { port: parsePort("health-port", port), limitMs };
}

/** Whether only this machine can reach an address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/** Keys of clients go over the wire as they are: others must not be able to read along. */
function assertOnlyLoopback(host: string, listeners: readonly ListenerPlace[]): void {
  const hosts = [host, ...listeners.flatMap(({ url }) => listHosts(url))];
  const open = hosts.find((each) => !isLoopback(each));
  if (open === undefined) return;
  throw new UsageError(
    `--client-keys is for this machine alone, and ${open} is not: there is no encryption here. Listen on 127.0.0.1, and put a proxy with TLS before it.`,
  );
}

/** The host of an address; none of a socket that is a file. */
function listHosts(url: string): string[] {
  const hostname = toUrl(url)?.hostname.replace(/^\[|\]$/g, "") ?? "";
  return hostname === "" ? [] : [hostname];
}

/** `gyre/serve-token` in the state folder, beside the sessions. */
export function defaultTokenFile(env: Io["env"]): string {
  return join(dirname(defaultSessionFolder(env)), "serve-token");
}

/** Nothing at all would mean every address. */
function parseAddress(text: string): string {
  if (/^[\w.:-]+$/.test(text)) return text;
  throw new UsageError(`--host "${text}" must be an address or a name: 127.0.0.1, ::1, 0.0.0.0`);
}

function parsePort(name: OptionName, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= MAX_PORT) return port;
  throw new UsageError(`--${name} "${text}" must be a number from 0 (a free port) to ${MAX_PORT}.`);
}

function parseSeconds(name: OptionName, text: string | undefined, standard: number): number {
  if (text === undefined) return standard;
  const seconds = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (seconds <= MAX_SECONDS) return seconds * MS_PER_SECOND;
  throw new UsageError(`--${name} "${text}" must be seconds, from 0 to ${MAX_SECONDS}.`);
}

/** A name as it stands in the `Host` of a request. */
function parseHost(text: string): string {
  const url = toUrl(`http://${text}`);
  // The usual port is left out of a URL, and may be in what was written.
  const isHost = url && [url.host, `${url.host}:80`].includes(text.toLowerCase());
  if (isHost) return text;
  throw new UsageError(`--allow-host "${text}" must be a name, or name:port: gyre.example.org`);
}

function parseOrigin(text: string): string {
  if (toUrl(text)?.origin === text.toLowerCase()) return text;
  throw new UsageError(
    `--allow-origin "${text}" must be what a browser calls a page's origin: https://example.org`,
  );
}
