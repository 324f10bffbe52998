import { type Clock, systemClock, type UserMessage } from "@gyre/ai";
import {
  invalidRequest,
  IdempotencyCache,
  type Connection,
  type Envelope,
  type Identity,
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
import { LocalSession, toRefusal } from "./local-session.ts";
import {
  type HostedSession,
  HostUnavailableError,
  type OpenedSession,
  type SessionAmendment,
  type SessionHost,
  type SessionInfo,
  type SessionListRequest,
  type SessionPage,
  type SessionPageRequest,
  type SharedSession,
} from "./session-host.ts";
import {
  parseChanges,
  parseDecisions,
  parseFileRequest,
  parseMessage,
  parseMessages,
  parseArchive,
  parseFork,
  parsePage,
  parsePrompt,
  parseQueueEdit,
  parseRename,
  parseSearch,
  parseTools,
} from "./session-payloads.ts";
import { FollowedSession } from "./followed-session.ts";
import { type ListedSession, readLiveFirst } from "./live-first.ts";
import { createFilter, cutPage, readListed, readState } from "./session-list.ts";

/** A request of a client, before anything of it is done. */
export interface SessionRequest {
  /** `session_create`, `prompt`, `approve`, ...: as in the protocol. */
  readonly type: string;
  /** The session that it is about. Absent: it is about none, or makes one. */
  readonly session?: string;
  /** The user that asks, where the server knows it. */
  readonly identity?: Identity;
}

export interface SessionServiceOptions {
  limits?: Partial<Limits>;
  clock?: Clock;
  /** Sessions that are idle for this time are closed; a client that attaches opens them again. Default: never. */
  idleMs?: number;
  /** Whether another service of the server has a stream of that name: no session can be attached to by it. */
  isTaken?: (id: string) => boolean;
  /**
   * Called before each request is done, and awaited: what it throws is the answer, `ProtocolError` with
   * its code. So a server of several users says who may do what, and keeps who did it.
   */
  onRequest?: (request: SessionRequest) => void | Promise<void>;
  /** Errors that no client gets. */
  onError?: (error: unknown, where: string) => void;
}

type SessionCommand = (
  session: LiveSession,
  frame: Pick<Envelope, "id" | "payload">,
  ack: (payload?: Payload) => void,
  identity: Identity | undefined,
) => Payload | void | Promise<Payload | void>;

/** Requests about one connection, which clients repeat on the next one. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  "session_attach",
  "tool_register",
  "tool_update",
  "tool_result",
]);

/** Begins a run or queues something: what a client that knows another epoch must not do twice. */
const OF_EPOCH: ReadonlySet<string> = new Set([
  "prompt",
  "continue",
  "approve",
  "steer",
  "follow_up",
]);

/** A request that the host of a session answers. It is of no stream: others do not wait for it. */
const HOST_REQUEST = "session_request";
/** A part of a file of a session. It is of no stream, as the one above. */
const FILE_REQUEST = "session_file";
/** The contents of a file, stored by a route of HTTP; for `onRequest`. */
const FILE_UPLOAD = "session_file_upload";

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
  /** Sessions that are not open and are being written to. */
  readonly #amending = new Map<string, Promise<void>>();
  /** A repeated `session_create` or `session_fork` of a user gets the session of the first one, on any connection. */
  readonly #created = new Map<string, IdempotencyCache>();
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
      findCache: (frame) => this.#findCache(frame, connection().identity),
      findTimeoutMs: ({ type }) => (type === HOST_REQUEST ? Infinity : undefined),
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
      session_list: ({ payload }) => this.#list(parsePage(payload), connection().identity),
      session_create: async ({ id, payload }) => {
        const session = await this.#create(payload, id, connection().identity);
        attach(session);
        return { ...session.createSnapshot() };
      },
      session_attach: async (frame, ack) => {
        const session = await this.#open(readStream(frame), connection().identity);
        await session.synchronize();
        attach(session);
        const { after, epoch, status } = frame.payload;
        ack(session.getPosition());
        session.catchUp(connection(), after, epoch);
        if (status === true && !connection().isClosed) session.watchStatus(connection());
      },
      session_close: async (frame, ack) => {
        const session = findAttached(frame, attached);
        await this.#closeOne(session, () => ack());
        attached.delete(session.id);
      },
      [HOST_REQUEST]: ({ payload }) => this.#askHost(payload, connection().identity),
      [FILE_REQUEST]: ({ payload }) => {
        const { session, sha256, offset } = parseFileRequest(payload);
        return this.#withOpened(session, connection().identity, (live) =>
          live.readFile(sha256, offset),
        );
      },
      session_rename: async ({ payload }) => {
        const { session, title } = parseRename(payload);
        await this.#amend(session, { title }, connection().identity);
      },
      session_archive: async ({ payload }) => {
        const { session, archived } = parseArchive(payload);
        await this.#amend(session, { archived }, connection().identity);
      },
      session_search: async ({ payload }) => {
        if (!this.#host.search)
          throw notImplemented("Texts of sessions cannot be looked for here.");
        const { matches, next } = await this.#host.search(
          parseSearch(payload),
          connection().identity,
        );
        return { matches, ...(next !== undefined && { next }) };
      },
      session_fork: ({ id, payload }) => this.#fork(parseFork(payload), id, connection().identity),
      tool_register: (frame) => {
        const { clientTools } = findAttached(frame, attached);
        const registration = parseTools(frame.payload);
        if (connection().isClosed) return undefined;
        return clientTools.register(connection(), registration);
      },
    };
    for (const [type, command] of Object.entries(this.#commands)) {
      handlers[type] = (frame, ack) => {
        const session = findAttached(frame, attached);
        if (OF_EPOCH.has(type)) assertEpoch(frame, session);
        return command(session, frame, ack, connection().identity);
      };
    }
    for (const type of ["tool_update", "tool_result"]) {
      handlers[type] = (frame) => {
        const { clientTools } = findAttached(frame, attached);
        return clientTools.settleCall(connection(), type, frame.payload);
      };
    }
    const all = Object.entries(handlers);
    return new Map(
      all.map(([type, handler]) => [
        type,
        leaveUnavailable(this.#afterHook(handler, connection), connection),
      ]),
    );
  }

  /** Without a hook, what is answered at once stays so. */
  #afterHook(handler: RequestHandler, connection: () => Connection): RequestHandler {
    const { onRequest } = this.#options;
    if (!onRequest) return handler;
    return async (frame, ack) => {
      await onRequest(describeRequest(frame, connection().identity));
      return handler(frame, ack);
    };
  }

  async #askHook(type: string, session: string, identity: Identity | undefined): Promise<void> {
    await this.#options.onRequest?.({ type, session, ...(identity && { identity }) });
  }

  /** By the type of their requests. */
  readonly #commands: Readonly<Record<string, SessionCommand>> = {
    prompt: async (session, { id, payload }, ack, identity) =>
      session.prompt(await session.storePrompt(parsePrompt(payload)), id, ack, identity),
    continue: (session, { id }, ack) => session.continue(id, ack),
    approve: (session, { id, payload }, ack, identity) =>
      session.approve(parseDecisions(payload, session.pendingIds), id, ack, identity),
    steer: async (session, { id, payload }) =>
      session.enqueue("steering", await this.#parseMessage(session, payload), id),
    follow_up: async (session, { id, payload }) =>
      session.enqueue("followUp", await this.#parseMessage(session, payload), id),
    queue_edit: async (session, { id, payload }) => {
      const edit = parseQueueEdit(payload, this.#clock.now());
      if (edit.op !== "edit") return session.editQueue(edit, id);
      const [message = edit.message] = await session.storeMessages([edit.message]);
      return session.editQueue({ ...edit, message }, id);
    },
    abort: (session, { id }) => session.abort(id),
    session_update: (session, { id, payload }) => session.update(parseChanges(payload), id),
    messages_replace: async (session, { id, payload }) =>
      session.replaceMessages(await session.storeMessages(parseMessages(payload)), id),
    reset: (session, { id }) => session.reset(id),
  };

  async #parseMessage(session: LiveSession, payload: Payload): Promise<UserMessage> {
    const message = parseMessage(payload, this.#clock.now());
    const [stored = message] = await session.storeMessages([message]);
    return stored;
  }

  /**
   * The contents of a file of a session, which is opened if it is not. For routes of HTTP; clients of a
   * connection send `session_file`. Throws `ProtocolError`.
   */
  async readFile(session: string, sha256: string, identity?: Identity): Promise<Uint8Array> {
    await this.#askHook(FILE_REQUEST, session, identity);
    return this.#withOpened(session, identity, (live) => live.readWholeFile(sha256));
  }

  /** Stores the contents of a file of a session, which is opened if it is not. Throws `ProtocolError`. */
  async writeFile(
    session: string,
    sha256: string,
    bytes: Uint8Array,
    identity?: Identity,
  ): Promise<void> {
    await this.#askHook(FILE_UPLOAD, session, identity);
    return this.#withOpened(session, identity, (live) => live.writeFile(sha256, bytes));
  }

  /** `{session, name, ...}`: what the host makes of it. The session is opened, if it is not. */
  async #askHost(
    { session: id, name, ...payload }: Payload,
    identity: Identity | undefined,
  ): Promise<Payload> {
    if (typeof id !== "string") throw invalidRequest('"session" is the id of a session.');
    if (typeof name !== "string") throw invalidRequest('"name" is the name of a request.');
    return this.#withOpened(id, identity, (session) =>
      session.askHost(name, payload).catch((error: unknown) => {
        throw toRefusal(error);
      }),
    );
  }

  /**
   * Stores what lists show of a session. One that is not open stays so: changes of it are made one
   * after the other, and a client that attaches meanwhile waits, as a session has one writer.
   */
  async #amend(
    id: string,
    changes: SessionAmendment,
    identity: Identity | undefined,
  ): Promise<void> {
    this.#assertOpen();
    const before = Promise.allSettled([this.#amending.get(id), this.#opening.get(id)]);
    const amending = before.then(() => this.#amendNow(id, changes, identity));
    this.#amending.set(id, amending);
    try {
      await amending;
    } finally {
      if (this.#amending.get(id) === amending) this.#amending.delete(id);
    }
  }

  async #amendNow(
    id: string,
    changes: SessionAmendment,
    identity: Identity | undefined,
  ): Promise<void> {
    const live = this.#sessions.get(id);
    if (live?.isClosed) await live.close();
    else if (live?.hosted.amend) {
      return live.hosted.amend(changes).catch((error: unknown) => {
        throw toRefusal(error);
      });
    }
    if (!this.#host.amend) throw notImplemented("Sessions cannot be renamed or put away here.");
    if (!(await this.#host.amend(id, changes, identity))) throw sessionNotFound(id);
  }

  async #fork(
    { session, ...options }: ReturnType<typeof parseFork>,
    key: string,
    identity: Identity | undefined,
  ): Promise<Payload> {
    this.#assertOpen();
    if (!this.#host.fork) throw notImplemented("Sessions cannot be forked here.");
    const made = await this.#host.fork(session, options, key, identity);
    if (made === undefined) throw sessionNotFound(session);
    return { session: made };
  }

  /** Opens the session, if it is not open, for as long as it is used. */
  async #withOpened<T>(
    id: string,
    identity: Identity | undefined,
    use: (session: LiveSession) => Promise<T>,
  ): Promise<T> {
    const session = await this.#open(id, identity);
    try {
      return await use(session);
    } finally {
      this.#watchIdle(session);
    }
  }

  async #list(
    page: SessionListRequest | undefined,
    identity: Identity | undefined,
  ): Promise<Payload> {
    const { sessions, next } = await (page
      ? this.#readPage(page, identity)
      : this.#readAll(identity));
    const described = sessions.map((info) => this.#describe(info));
    return { sessions: described, ...(next !== undefined && { next }) };
  }

  #describe(info: SessionInfo): ListedSession {
    const live = this.#sessions.get(info.id);
    // One that is open elsewhere may run there.
    const isRunning = live?.isBusy ?? info["isRunning"] === true;
    const state = live?.sessionState ?? readState(info);
    return { ...info, isOpen: live !== undefined, isRunning, state };
  }

  async #readAll(identity: Identity | undefined): Promise<SessionPage> {
    const listed = await this.#host.list(identity);
    const known = new Set(listed.map(({ id }) => id));
    return { sessions: [...listed, ...this.#listOpen(({ id }) => !known.has(id))] };
  }

  async #readPage(
    { order, ...request }: SessionListRequest,
    identity: Identity | undefined,
  ): Promise<SessionPage> {
    if (order === "live") return this.#readLiveFirst(request, identity);
    const page = { ...request, ...(order && { order }) };
    if (!this.#host.listPage) return cutPage((await this.#readAll(identity)).sessions, page);
    const { sessions, next } = await this.#readHost(page, identity);
    if (next !== undefined) return { sessions, next };
    // Those that the host does not list come last.
    const isAskedFor = createFilter(page);
    const open = this.#listOpen(({ isListed = true }) => !isListed).filter(isAskedFor);
    return { sessions: [...sessions, ...open] };
  }

  async #readHost(page: SessionPageRequest, identity: Identity | undefined): Promise<SessionPage> {
    const read = async (part: SessionPageRequest): Promise<SessionPage> =>
      (await this.#host.listPage?.(part, identity)) ?? { sessions: [] };
    const isServed = (info: SessionInfo): boolean => this.#host.isServed?.(info) ?? true;
    return page.allFolders ? readListed(page, read, isServed) : read(page);
  }

  async #readLiveFirst(
    page: SessionPageRequest,
    identity: Identity | undefined,
  ): Promise<SessionPage> {
    const open = [...this.#sessions.values()].map(async ({ hosted }) => {
      const stored = await this.#host.describe?.(hosted.id);
      return this.#describe(stored ?? { id: hosted.id, ...hosted.info?.() });
    });
    const isAskedFor = createFilter(page);
    const live = (await Promise.all(open)).filter((session) => isAskedFor(session));
    return readLiveFirst(page, live, (rest) => this.#readPage(rest, identity));
  }

  #listOpen(want: (hosted: OpenedSession) => boolean): SessionInfo[] {
    const open = [...this.#sessions.values()].map(({ hosted }) => hosted);
    return open.filter(want).map((hosted) => ({ id: hosted.id, ...hosted.info?.() }));
  }

  #create(options: Payload, key: string, identity: Identity | undefined): Promise<LiveSession> {
    this.#assertOpen();
    const creating = this.#host
      .create(options, key, identity)
      .then((hosted) => this.#addSession(hosted));
    this.#creating.add(creating);
    const forget = (): void => void this.#creating.delete(creating);
    creating.then(forget, forget);
    return creating;
  }

  async #open(id: string, identity: Identity | undefined): Promise<LiveSession> {
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
    const opening = this.#openStored(id, identity).then((hosted) => {
      if (!hosted) throw sessionNotFound(id);
      return this.#addSession(hosted);
    });
    this.#opening.set(id, opening);
    const forget = (): void => void this.#opening.delete(id);
    opening.then(forget, forget);
    return opening;
  }

  async #openStored(id: string, identity: Identity | undefined): ReturnType<SessionHost["open"]> {
    // The client that amends it gets the error.
    await Promise.allSettled([this.#amending.get(id)]);
    return this.#host.open(id, identity);
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
  #findCache(
    { type, stream, payload }: Envelope,
    identity: Identity | undefined,
  ): IdempotencyCache | undefined {
    // Asked again it is the same, and too long to be kept.
    if (type === FILE_REQUEST) return new IdempotencyCache();
    if (type === "session_create" || type === "session_fork")
      return this.#host.isShared ? undefined : this.#findCreated(identity);
    if (type === HOST_REQUEST) {
      return this.#sessions.get(String(payload["session"]))?.idempotencyCache;
    }
    if (OF_CONNECTION.has(type) || stream === undefined) return undefined;
    return this.#sessions.get(stream)?.idempotencyCache;
  }

  /** Another user's request may have the same id. */
  #findCreated(identity: Identity | undefined): IdempotencyCache {
    const user = JSON.stringify([identity?.tenant, identity?.user]);
    const cache = this.#created.get(user) ?? new IdempotencyCache();
    this.#created.set(user, cache);
    return cache;
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

function describeRequest(frame: Envelope, identity: Identity | undefined): SessionRequest {
  const { type, stream, payload } = frame;
  const session = stream ?? payload["session"];
  return {
    type,
    ...(typeof session === "string" && { session }),
    ...(identity && { identity }),
  };
}

function sessionNotFound(id: string): ProtocolError {
  return new ProtocolError("session_not_found", `There is no session "${id}".`);
}

function notImplemented(what: string): ProtocolError {
  return new ProtocolError("not_implemented", what);
}

function readStream({ stream }: Envelope): string {
  if (stream !== undefined) return stream;
  throw invalidRequest('"stream" is the id of a session.');
}

/** Refuses a request that was sent, or sent again, after the session was opened again. */
function assertEpoch({ payload: { epoch } }: Envelope, session: LiveSession): void {
  if (epoch === undefined || epoch === session.epoch) return;
  const what = `Session "${session.id}" was opened again since: its messages show what was accepted.`;
  throw new ProtocolError("stream_not_found", what);
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
