import { once } from "node:events";
import { type Clock, type Model, systemClock, errorMessage, toUrl } from "@gyre/ai";
import { ModelService, WireServer, type Transport, type WireService } from "@gyre/protocol";
import { readOrMakeToken } from "@gyre/protocol/node";
import { openStdio } from "@gyre/protocol/stdio";
import { SessionService } from "@gyre/server";
import { EXIT, type ExitCode, ExitError, findExitCode } from "../../core/exit-codes.ts";
import { orAborted } from "@gyre/coding/internal/conversation/command";
import type { Io, Sink } from "../../core/io.ts";
import { type Models, openModels } from "@gyre/coding/internal/models/models";
import type { Values } from "../../core/options.ts";
import { createWritable, redirectConsole } from "../../core/streams.ts";
import { RpcHost, rpcSetup } from "../rpc/host.ts";
import { readSetup } from "../../core/setup.ts";
import { version } from "@gyre/coding/internal/core/version";
import { readCeilings } from "./ceilings.ts";
import { type Listeners, openListeners } from "./listeners.ts";
import { errorCode, ServeLog } from "./log.ts";
import { isLoopback, type ServeOptions, serveOptions, type ServePlace } from "./options.ts";
import { SharedSessions } from "./shared-sessions.ts";
import { usableModels } from "./usable-models.ts";
import { WatchedService } from "./watched-service.ts";

/** How often it is looked whether all that runs has ended. */
const LOOK_MS = 50;
/** How long clients have to leave after the goodbye. */
const LEAVE_MS = 2000;

export interface ServeParts {
  /** The models to serve, in place of those that the settings give. */
  models?: Models;
  clock?: Clock;
}

/**
 * `gyre serve`: models and sessions for other programs, over WebSocket, HTTP and TCP, or with
 * `--stdio` on stdin and stdout. Asked to end, it accepts no client and begins nothing, gives
 * what runs `--drain` seconds, aborts the rest, writes everything down and says goodbye.
 */
export async function runServe(
  values: Values,
  io: Io,
  { models, clock = systemClock }: ServeParts = {},
): Promise<ExitCode> {
  const options = serveOptions(values, io);
  const log = new ServeLog(io.stderr, { isQuiet: options.isQuiet, clock });
  // What is said on the way is a line of the log, like all else.
  const logged: Io = { ...io, stderr: { write: (text) => log.warning(stripProgramName(text)) } };
  const restoreConsole = redirectConsole(logged.stderr);
  try {
    const server = await Served.open(values, logged, options, log, clock, models);
    const code = options.place
      ? await server.onPorts(options.place, io)
      : await server.onStreams(io);
    log.info({ event: "exit", code });
    return code;
  } finally {
    restoreConsole();
  }
}

class Served {
  readonly #options: ServeOptions;
  readonly #log: ServeLog;
  readonly #clock: Clock;
  readonly #models: ModelService;
  readonly #sessions: SessionService;
  /** Of a server with a database. */
  readonly #shared: SharedSessions | undefined;
  readonly #wire: WireServer;
  #isStopping = false;
  #connections = 0;
  /** The transport of the connection that is about to be served. */
  #arriving = "";

  private constructor(
    options: ServeOptions,
    log: ServeLog,
    clock: Clock,
    models: ModelService,
    sessions: SessionService | SharedSessions,
  ) {
    this.#options = options;
    this.#log = log;
    this.#clock = clock;
    this.#models = models;
    this.#shared = sessions instanceof SharedSessions ? sessions : undefined;
    this.#sessions = sessions instanceof SharedSessions ? sessions.service : sessions;
    const watched = [models, this.#sessions].map(
      (service) =>
        new WatchedService(service, {
          // What is begun in a shared session goes on elsewhere.
          isStopping: () => this.#isStopping && (service === models || !this.#shared),
          onRefused: (type, error) => {
            const code = errorCode(error) ?? "internal_error";
            log.info({ event: "request_error", type, code });
          },
        }),
    );
    this.#wire = new WireServer([...watched, this.#connectionLog()], {
      server: { name: "gyre", version: version() },
      onError: (error, where) => log.error(error, where),
      clock,
    });
  }

  /** Throws what is wrong with the command line or the settings. */
  static async open(
    values: Values,
    io: Io,
    options: ServeOptions,
    log: ServeLog,
    clock: Clock,
    given?: Models,
  ): Promise<Served> {
    const setup = await readSetup(values, io);
    const { settings, policy, verbose } = setup;
    const more = verbose === undefined ? {} : { verbose };
    const models =
      given ?? (await openModels({ settings, env: io.env, hidesAddresses: true, policy, ...more }));
    const onError = (error: unknown, where: string): void => log.error(error, where);
    const tokenFile = options.place?.tokenFile;
    const ceilings = await readCeilings({ values, setup, models, io, tokenFile });
    if (ceilings.unsandboxed) {
      log.warning(
        "Commands may run outside of the sandbox (--allow-unsandboxed): every client can read the keys of this server.",
      );
    }
    const usable = usableModels({ models, settings, env: io.env, only: ceilings.models });
    // One that is named and not there is found out now, and not by the first client.
    if ((await usable()).length === 0) {
      log.warning(
        "There is no model to ask: no service has a key. Set one (ANTHROPIC_API_KEY, say), or `gyre login SERVICE`.",
      );
    }
    const modelService: ModelService = new ModelService({
      client: models.client,
      models: usable,
      clientKeys: options.clientKeys ?? false,
      modelsForClientKeys: () => listAllowed(models, ceilings.models),
      clock,
      isTaken: (id) => sessions.hasSession(id),
      onError,
    });
    const host = new RpcHost(values, rpcSetup(io), { start: io.cwd, ceilings });
    await host
      .prepare()
      .catch((error: unknown) => onError(error, "preparing for the first client"));
    const service = {
      clock,
      onError,
      idleMs: options.idleMs,
      isTaken: (id: string): boolean => modelService.hasStream(id),
    };
    const { database } = options;
    const opened = database
      ? await SharedSessions.open({ database, host, models, log, service })
      : new SessionService(host, service);
    const sessions = opened instanceof SharedSessions ? opened.service : opened;
    return new Served(options, log, clock, modelService, opened);
  }

  /** Until the program is asked to end. */
  async onPorts(place: ServePlace, { signal, stdout }: Io): Promise<ExitCode> {
    const { token, isNew } = await readToken(place.tokenFile);
    const named = place.listeners.flatMap(({ url }) => toUrl(url) ?? []);
    const hosts = new Set([place.host, ...named.map(({ hostname }) => hostname)]);
    for (const host of hosts) {
      if (host === "" || isLoopback(host.replace(/^\[|\]$/g, ""))) continue;
      this.#log.warning(
        `Others can come to ${host}, and there is no encryption here: put a proxy with TLS before it.`,
      );
    }
    const listeners = await openListeners({
      place,
      token,
      models: this.#models,
      sessions: this.#sessions,
      serve: (transport, kind) => this.#serve(transport, kind),
      log: this.#log,
      clock: this.#clock,
    });
    listeners.metrics.add({
      name: "gyre_sessions_running",
      help: "Sessions with a run that goes on.",
      read: () => this.#sessions.running,
    });
    const shared = this.#shared;
    if (shared) listeners.metrics.addSource(() => shared.metrics());
    listeners.metrics.add({
      name: "gyre_streams_running",
      help: "Responses of models that are on their way.",
      read: () => this.#models.running,
    });
    greet(stdout, listeners, place.tokenFile, isNew ? token : undefined);
    if (!signal.aborted) await once(signal, "abort");
    const left = listeners.close(this.#options.drainMs + LEAVE_MS);
    await this.#stop();
    await this.#within(LEAVE_MS, left);
    await listeners.health?.close();
    return findExitCode(signal);
  }

  /** Until the other end leaves, or the program is asked to end. */
  async onStreams({ signal, stdin, stdout }: Io): Promise<ExitCode> {
    const transport = openStdio({ input: stdin, output: createWritable(stdout) });
    this.#log.info({ event: "listen", transport: "stdio" });
    const gone = new Promise<void>((resolve) => {
      this.#serve(whenClosed(transport, resolve), "stdio");
    });
    await orAborted(gone, signal);
    if (signal.aborted) await this.#stop();
    // No client can come back to it.
    else await this.#close();
    return signal.aborted ? findExitCode(signal) : EXIT.done;
  }

  #serve(transport: Transport, kind: string): void {
    this.#arriving = kind;
    this.#wire.serve(transport);
  }

  /** Lets what runs come to its end for a while, and ends the rest. */
  async #stop(): Promise<void> {
    this.#isStopping = true;
    const { drainMs } = this.#options;
    this.#log.info({ event: "drain", ...this.#running(), drainMs });
    const until = this.#clock.now() + drainMs;
    const drained = this.#shared?.drain(drainMs);
    while (this.#isBusy() && this.#clock.now() < until) await this.#after(LOOK_MS);
    if (this.#isBusy()) this.#log.info({ event: "abort", ...this.#running() });
    // Clients of shared sessions continue at another server, which may have the run by now.
    await this.#close(drained);
  }

  async #close(drained?: Promise<void>): Promise<void> {
    await this.#wire.close();
    await (drained ?? this.#shared?.drain(0));
    await this.#shared?.close();
  }

  #running(): { sessions: number; streams: number } {
    return { sessions: this.#sessions.running, streams: this.#models.running };
  }

  #isBusy(): boolean {
    const { sessions, streams } = this.#running();
    // A run of a shared session ends where it is.
    return (this.#shared ? 0 : sessions) + streams > 0;
  }

  /** Settles with the work, or without it when the time is over. */
  async #within(ms: number, work: Promise<void>): Promise<void> {
    let stop = (): void => {};
    const late = new Promise<void>((resolve) => (stop = this.#clock.after(ms, resolve)));
    await Promise.race([work, late]);
    stop();
  }

  #after(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#clock.after(ms, resolve));
  }

  /** Answers nothing: it is called with each connection, like every service. */
  #connectionLog(): WireService {
    return {
      connect: () => {
        const connection = ++this.#connections;
        const from = this.#clock.now();
        this.#log.info({ event: "connect", connection, transport: this.#arriving });
        return {
          handlers: new Map(),
          onClose: (reason) => {
            const durationMs = this.#clock.now() - from;
            this.#log.info({ event: "disconnect", connection, reason, durationMs });
          },
        };
      },
      close: async () => {},
    };
  }
}

/** The models that a client may ask with a key of its own: of all services, or those of `--models`. */
async function listAllowed(models: Models, only?: readonly string[]): Promise<readonly Model[]> {
  return only ? Promise.all(only.map((name) => models.find(name))) : models.list();
}

async function readToken(file: string): Promise<{ token: string; isNew: boolean }> {
  try {
    return await readOrMakeToken(file);
  } catch (error) {
    const message = errorMessage(error);
    throw new ExitError(EXIT.failed, message, { cause: error });
  }
}

/** For the person who starts it. The token is shown when it is made, and never again. */
function greet(stdout: Sink, listeners: Listeners, tokenFile: string, token?: string): void {
  const { http, others, health } = listeners;
  const lines = [
    `Serving at ${http.url}`,
    ...others.map(({ url }) => `Also at ${url}`),
    ...(health ? [`Health at ${health.url}`] : []),
    `The token is in ${tokenFile}`,
    ...(token === undefined ? [] : [`It was made now, and is shown this once: ${token}`]),
  ];
  stdout.write(`${lines.join("\n")}\n`);
}

/** The same transport; `closed` is called when it is over. */
function whenClosed(transport: Transport, closed: () => void): Transport {
  return {
    send: (envelope) => transport.send(envelope),
    receive: (handler) =>
      transport.receive({
        onFrame: (envelope) => handler.onFrame(envelope),
        onFault: (error) => handler.onFault(error),
        onClose: (error) => {
          handler.onClose(error);
          closed();
        },
      }),
    close: () => transport.close(),
  };
}

/** What a line on stderr says, without the name of the program before it. */
function stripProgramName(text: string): string {
  return text.trimEnd().replace(/^gyre: /, "");
}
