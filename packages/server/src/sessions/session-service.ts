import { type Clock, systemClock, type UserMessage } from "@gyre/ai";
import {
  invalidRequest,
  IdempotencyCache,
  type Connection,
  type Envelope,
  type Limits,
  LIMITS,
  type Payload,
  ProtocolError,
  type RequestHandler,
  type ServedConnection,
  stoppingError,
  type Transport,
  WireServer,
  type WireServerOptions,
  type WireService,
} from "@gyre/protocol";
import type { LiveSession } from "./live-session.ts";
import { LocalSession } from "./local-session.ts";
import {
  type HostedSession,
  HostUnavailableError,
  type OpenedSession,
  type SessionHost,
  type SessionInfo,
  type SessionPage,
  type SharedSession,
} from "./session-host.ts";
import {
  parseChanges,
  parseDecisions,
  parseMessage,
  parseMessages,
  type PageRequest,
  parsePage,
  parsePrompt,
  parseQueueEdit,
  parseTools,
} from "./session-payloads.ts";
import { FollowedSession } from "./followed-session.ts";

export interface SessionServiceOptions {
  limits?: Partial<Limits>;
  clock?: Clock;
  /** Sessions that are idle for this time are closed; a client that attaches opens them again. Default: never. */
  idleMs?: number;
  /** Whether another service of the server has a stream of that name: no session can be attached to by it. */
  isTaken?: (id: string) => boolean;
  /** Errors that no client gets. */
  onError?: (error: unknown, where: string) => void;
}

type SessionCommand = (
  session: LiveSession,
  frame: Pick<Envelope, "id" | "payload">,
  ack: (payload?: Payload) => void,
) => Payload | void | Promise<Payload | void>;

/** Requests about one connection, which clients repeat on the next one. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  "session_attach",
  "tool_register",
  "tool_update",
  "tool_result",
]);

/** Half of a frame is for messages; the rest of a snapshot is small, except for a partial message. */
const SNAPSHOT_SHARE = 0.5;

/**
 * Serves sessions on one transport, with a service and a server of its own. For connections that
 * come and go, give one `SessionService` to one `WireServer`, and each transport to its `serve()`.
 */
export function serveSessions(
  transport: Transport,
  host: SessionHost,
  options: SessionServiceOptions & WireServerOptions = {},
): WireServer {
  const server = new WireServer([new SessionService(host, options)], options);
  server.serve(transport);
  return server;
}

/** Sessions for any number of clients. They go on when a client leaves. */
export class SessionService implements WireService {
  readonly #host: SessionHost;
  readonly #options: SessionServiceOptions;
  readonly #limits: Limits;
  readonly #clock: Clock;
  readonly #sessions = new Map<string, LiveSession>();
  /** Sessions that are being opened, so that two clients share one. */
  readonly #opening = new Map<string, Promise<LiveSession>>();
  readonly #creating = new Set<Promise<LiveSession>>();
  /** A repeated `session_create` gets the session of the first one, on any connection. */
  readonly #created = new IdempotencyCache();
  /** Takes back the timer of a session that may be idle. */
  readonly #idleTimers = new Map<LiveSession, () => void>();
  #isClosed = false;

  constructor(host: SessionHost, options: SessionServiceOptions = {}) {
    this.#host = host;
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#clock = options.clock ?? systemClock;
  }

  /** Whether a session of that id is open. */
  hasSession(id: string): boolean {
    return this.#sessions.has(id) || this.#opening.has(id);
  }

  /** How many sessions have a run. */
  get running(): number {
    return [...this.#sessions.values()].filter(({ isBusy }) => isBusy).length;
  }

  connect(connection: () => Connection): ServedConnection {
    const attached = new Map<string, LiveSession>();
    return {
      handlers: this.#createHandlers(attached, connection),
      findCache: (frame) => this.#findCache(frame),
      onClose: () => {
        for (const session of attached.values()) {
          session.unwatch(connection());
          session.clientTools.disconnect(connection());
          this.#watchIdle(session);
        }
      },
    };
  }

  /** Aborts all runs and closes every session. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const cancel of this.#idleTimers.values()) cancel();
    this.#idleTimers.clear();
    const late = await Promise.allSettled([...this.#opening.values(), ...this.#creating]);
    const opened = late.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    const sessions = new Set([...this.#sessions.values(), ...opened]);
    const closed = await Promise.allSettled(
      [...sessions].map((session) => this.#closeOne(session)),
    );
    for (const each of closed) {
      if (each.status === "rejected") this.#report(each.reason, "closing a session");
    }
  }

  #createHandlers(
    attached: Map<string, LiveSession>,
    connection: () => Connection,
  ): Map<string, RequestHandler> {
    const attach = (session: LiveSession): void => {
      if (!attached.has(session.id) && attached.size >= this.#limits.streams) {
        const what = `A connection has at most ${this.#limits.streams} sessions.`;
        throw new ProtocolError("too_many_streams", what);
      }
      if (connection().isClosed) return;
      attached.set(session.id, session);
      session.watch(connection());
    };
    const handlers: Record<string, RequestHandler> = {
      session_list: ({ payload }) => this.#list(parsePage(payload)),
      session_create: async ({ id, payload }) => {
        const session = await this.#create(payload, id);
        attach(session);
        return { ...session.createSnapshot() };
      },
      session_attach: async (frame, ack) => {
        const session = await this.#open(readStream(frame));
        await session.synchronize();
        attach(session);
        const { after, epoch } = frame.payload;
        ack(session.getPosition());
        session.catchUp(connection(), after, epoch);
      },
      session_close: async (frame, ack) => {
        const session = findAttached(frame, attached);
        await this.#closeOne(session, () => ack());
        attached.delete(session.id);
      },
      tool_register: (frame) => {
        const { clientTools } = findAttached(frame, attached);
        const registration = parseTools(frame.payload);
        if (connection().isClosed) return undefined;
        return clientTools.register(connection(), registration);
      },
    };
    for (const [type, command] of Object.entries(this.#commands)) {
      handlers[type] = (frame, ack) => command(findAttached(frame, attached), frame, ack);
    }
    for (const type of ["tool_update", "tool_result"]) {
      handlers[type] = (frame) => {
        const { clientTools } = findAttached(frame, attached);
        return clientTools.settleCall(connection(), type, frame.payload);
      };
    }
    const all = Object.entries(handlers);
    return new Map(all.map(([type, handler]) => [type, leaveUnavailable(handler, connection)]));
  }

  /** By the type of their requests. */
  readonly #commands: Readonly<Record<string, SessionCommand>> = {
    prompt: (session, { id, payload }, ack) => session.prompt(parsePrompt(payload), id, ack),
    continue: (session, { id }, ack) => session.continue(id, ack),
    approve: (session, { id, payload }, ack) =>
      session.approve(parseDecisions(payload, session.pendingIds), id, ack),
    steer: (session, { id, payload }) =>
      session.enqueue("steering", this.#parseMessage(payload), id),
    follow_up: (session, { id, payload }) =>
      session.enqueue("followUp", this.#parseMessage(payload), id),
    queue_edit: (session, { id, payload }) =>
      session.editQueue(parseQueueEdit(payload, this.#clock.now()), id),
    abort: (session, { id }) => session.abort(id),
    session_update: (session, { id, payload }) => session.update(parseChanges(payload), id),
    messages_replace: (session, { id, payload }) =>
      session.replaceMessages(parseMessages(payload), id),
    reset: (session, { id }) => session.reset(id),
  };

  #parseMessage(payload: Payload): UserMessage {
    return parseMessage(payload, this.#clock.now());
  }

  async #list(page: PageRequest | undefined): Promise<Payload> {
    const { sessions, next } = await (page ? this.#readPage(page) : this.#readAll());
    const described = sessions.map((info) => {
      const live = this.#sessions.get(info.id);
      // One that is open elsewhere may run there.
      const isRunning = live?.isBusy ?? info["isRunning"] === true;
      return { ...info, isOpen: live !== undefined, isRunning };
    });
    return { sessions: described, ...(next !== undefined && { next }) };
  }

  async #readAll(): Promise<SessionPage> {
    const listed = await this.#host.list();
    const known = new Set(listed.map(({ id }) => id));
    return { sessions: [...listed, ...this.#listOpen(({ id }) => !known.has(id))] };
  }

  async #readPage(page: PageRequest): Promise<SessionPage> {
    if (!this.#host.listPage) return cutPage((await this.#readAll()).sessions, page);
    const { sessions, next } = await this.#host.listPage(page);
    if (next !== undefined) return { sessions, next };
    // Those that the host does not list come last.
    return { sessions: [...sessions, ...this.#listOpen(({ isListed = true }) => !isListed)] };
  }

  #listOpen(want: (hosted: OpenedSession) => boolean): SessionInfo[] {
    const open = [...this.#sessions.values()].map(({ hosted }) => hosted);
    return open.filter(want).map((hosted) => ({ id: hosted.id, ...hosted.info?.() }));
  }

  #create(options: Payload, key: string): Promise<LiveSession> {
    this.#assertOpen();
    const creating = this.#host.create(options, key).then((hosted) => this.#addSession(hosted));
    this.#creating.add(creating);
    const forget = (): void => void this.#creating.delete(creating);
    creating.then(forget, forget);
    return creating;
  }

  async #open(id: string): Promise<LiveSession> {
    this.#assertOpen();
    const live = this.#sessions.get(id);
    if (live && !live.isClosed) return live;
    if (this.#options.isTaken?.(id)) {
      throw new ProtocolError("stream_exists", `"${id}" is the name of a response.`);
    }
    // A session that is being closed is opened again after that.
    if (live) await live.close().catch(() => {});
    const shared = this.#opening.get(id);
    if (shared) return shared;
    const opening = this.#host.open(id).then((hosted) => {
      if (!hosted) throw new ProtocolError("session_not_found", `There is no session "${id}".`);
      return this.#addSession(hosted);
    });
    this.#opening.set(id, opening);
    const forget = (): void => void this.#opening.delete(id);
    opening.then(forget, forget);
    return opening;
  }

  async #addSession(hosted: HostedSession | SharedSession): Promise<LiveSession> {
    const { tailEvents, tailBytes, frameBytes } = this.#limits;
    const options = {
      tailEvents,
      tailBytes,
      snapshotBytes: frameBytes * SNAPSHOT_SHARE,
      onError: (error: unknown, where: string): void => this.#report(error, where),
    };
    const session =
      "inbox" in hosted
        ? await FollowedSession.open(hosted, options)
        : new LocalSession(hosted, options);
    this.#sessions.set(hosted.id, session);
    this.#watchIdle(session);
    return session;
  }

  /** Looks after a while whether a session is idle, and closes it then. */
  #watchIdle(session: LiveSession): void {
    const { idleMs } = this.#options;
    this.#idleTimers.get(session)?.();
    this.#idleTimers.delete(session);
    if (idleMs === undefined || this.#isClosed || session.isClosed || session.hasWatchers) return;
    const look = (): void => {
      this.#idleTimers.delete(session);
      if (!session.isIdle) return this.#watchIdle(session);
      this.#closeOne(session).catch((error: unknown) =>
        this.#report(error, `closing session ${session.id}, which is idle`),
      );
    };
    this.#idleTimers.set(session, this.#clock.after(idleMs, look));
  }

  async #closeOne(session: LiveSession, closed?: () => void): Promise<void> {
    this.#idleTimers.get(session)?.();
    this.#idleTimers.delete(session);
    try {
      await session.close(closed);
    } finally {
      if (this.#sessions.get(session.id) === session) this.#sessions.delete(session.id);
    }
  }

  /** The cache of the session; requests about a connection use that of the connection. */
  #findCache({ type, stream }: Envelope): IdempotencyCache | undefined {
    if (type === "session_create") return this.#host.isShared ? undefined : this.#created;
    if (OF_CONNECTION.has(type) || stream === undefined) return undefined;
    return this.#sessions.get(stream)?.idempotencyCache;
  }

  #assertOpen(): void {
    if (this.#isClosed) throw stoppingError();
  }

  #report(error: unknown, where: string): void {
    this.#options.onError?.(error, where);
  }
}

/** Closes the connection of a client whose request cannot be done now: it sends the request again. */
function leaveUnavailable(handler: RequestHandler, connection: () => Connection): RequestHandler {
  return (frame, ack) => {
    const answer = handler(frame, ack);
    if (!(answer instanceof Promise)) return answer;
    return answer.catch(async (error: unknown) => {
      if (error instanceof HostUnavailableError) await connection().close("unavailable");
      throw error;
    });
  };
}

/** A part of a list whose host gives all of it. */
function cutPage(all: readonly SessionInfo[], { limit, after }: PageRequest): SessionPage {
  const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
  if (from === 0 && after !== undefined) {
    throw invalidRequest('"cursor" is "next" of the page before; that session is gone.');
  }
  const sessions = all.slice(from, from + limit);
  const last = from + limit < all.length ? sessions.at(-1) : undefined;
  return { sessions, ...(last && { next: last.id }) };
}

function readStream({ stream }: Envelope): string {
  if (stream !== undefined) return stream;
  throw invalidRequest('"stream" is the id of a session.');
}

function findAttached(frame: Envelope, attached: ReadonlyMap<string, LiveSession>): LiveSession {
  const id = readStream(frame);
  const session = attached.get(id);
  if (!session) {
    const what = `No session "${id}" is attached: make one with session_create, or use session_attach.`;
    throw new ProtocolError("session_not_found", what);
  }
  if (session.isClosed) throw new ProtocolError("session_not_found", `"${id}" was closed.`);
  return session;
}
