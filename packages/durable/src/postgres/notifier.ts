import { createHash, randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { toRecord } from "@gyre/ai";
import type * as Pg from "pg";
import type { Hint, Interest } from "../contract/store.ts";
import { clientConfig, type Database, isAway } from "./driver/database.ts";

/** A process sends at most one notification in this time: each takes a lock of the whole server. */
const MIN_GAP_MS = 20;
/** Postgres takes payloads below 8,000 bytes. */
export const MAX_PAYLOAD_BYTES = 7_900;
const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** How often, and for how long, the connection that listens is asked whether it works still. */
const PING_MS = 5_000;
/** A connection that has not ended after this time is cut. */
const END_MS = 1_000;

type MessageListener = (message: Readonly<Record<string, unknown>>) => void;

interface NotifierOptions {
  readonly pg: typeof Pg;
  readonly database: Database;
  /** Where notifications arrive: not behind a pooler. */
  readonly listenUrl: string;
  /** Stores of other schemas have another channel. */
  readonly schema: string;
  readonly onError: (error: unknown, where: string) => void;
}

/**
 * Hints between processes, by LISTEN and NOTIFY. They are sent beside the transactions of steps,
 * never in one, and joined. Nothing depends on them: callers look again now and then.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #channel: string;
  /** Has what processes that follow runs want, and only they listen to it. */
  readonly liveChannel: string;
  readonly #listeners: Record<Interest, Set<(hint: Hint) => void>> = {
    work: new Set(),
    log: new Set(),
  };
  /** Marks what this process posts. */
  readonly #id = randomUUID();
  readonly #ready = new Set<(session: string) => void>();
  readonly #probes = new Map<string, () => void>();
  readonly #messageListeners = new Set<MessageListener>();
  readonly #liveListeners = new Set<(payload: string) => void>();
  readonly #connectListeners = new Set<() => void>();
  readonly #changed: Record<Interest, Set<string>> = { work: new Set(), log: new Set() };
  #client: Pg.Client | undefined;
  #isConnecting = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #reconnectTimer: NodeJS.Timeout | undefined;
  #pingTimer: NodeJS.Timeout | undefined;
  #sentAt = 0;
  /** A connection runs one statement at a time. */
  #sending: Promise<void> = Promise.resolve();
  /** Notifications that were sent, for measurements. */
  sent = 0;

  constructor(options: NotifierOptions) {
    this.#options = options;
    const hash = createHash("sha256").update(options.schema).digest("hex").slice(0, 16);
    this.#channel = `gyre_${hash}`;
    this.liveChannel = `gyre_live_${hash}`;
  }

  listen(interest: Interest, listener: (hint: Hint) => void): () => void {
    this.#listeners[interest].add(listener);
    void this.#connect();
    return () => this.#listeners[interest].delete(listener);
  }

  /** Calls the listener with what other processes `post`. */
  listenToMessages(listener: MessageListener): () => void {
    this.#messageListeners.add(listener);
    void this.#connect();
    return () => this.#messageListeners.delete(listener);
  }

  /** Calls the listener with what arrives on the channel of live events. */
  listenToLive(listener: (payload: string) => void): () => void {
    this.#liveListeners.add(listener);
    if (this.#liveListeners.size === 1) void this.#query(`listen ${this.liveChannel}`);
    void this.#connect();
    return () => {
      this.#liveListeners.delete(listener);
      if (this.#liveListeners.size === 0) void this.#query(`unlisten ${this.liveChannel}`);
    };
  }

  /** Calls the listener whenever a connection begins to listen, and soon where one does already. */
  onConnect(listener: () => void): () => void {
    this.#connectListeners.add(listener);
    if (this.#client) void this.#sending.then(listener);
    return () => this.#connectListeners.delete(listener);
  }

  /** Sends a message to other processes; it may be lost. Larger than a payload it is not sent. */
  async post(message: object): Promise<void> {
    await this.#notify(JSON.stringify({ by: this.#id, ...message }));
  }

  /** Calls the listener with what this process changes: no connection is needed for that. */
  onReady(listener: (session: string) => void): () => void {
    this.#ready.add(listener);
    return () => this.#ready.delete(listener);
  }

  /** Reports a change to listeners here at once, and to other processes soon. */
  notify(interest: Interest, session: string): void {
    this.#call(interest, { session });
    if (interest === "work") for (const listener of [...this.#ready]) listener(session);
    this.#changed[interest].add(session);
    this.#timer ??= setTimeout(
      () => void this.#send(),
      Math.max(0, this.#sentAt + MIN_GAP_MS - Date.now()),
    ).unref();
  }

  /** Whether a notification that another connection sends arrives here within `ms`. */
  async probe(ms: number): Promise<boolean> {
    const token = randomUUID();
    return new Promise((resolve) => {
      const finish = (hasArrived: boolean): void => {
        clearTimeout(timer);
        stop();
        this.#probes.delete(token);
        resolve(hasArrived);
      };
      const timer = setTimeout(() => finish(false), ms);
      this.#probes.set(token, () => finish(true));
      const send = (): void => {
        const payload = JSON.stringify({ probe: token });
        this.#options.database
          .run("select pg_notify($1, $2)", this.#channel, payload)
          .catch(() => finish(false));
      };
      // A connection that begins to listen calls its listeners.
      const stop = this.listen("log", send);
      if (this.#client) send();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#reconnectTimer);
    clearInterval(this.#pingTimer);
    if (this.#changed.work.size > 0) await this.#send();
    await this.#sending;
    if (this.#client) await endClient(this.#client);
    this.#client = undefined;
  }

  #call(interest: Interest, hint: Hint): void {
    for (const listener of [...this.#listeners[interest]]) listener(hint);
  }

  async #send(): Promise<void> {
    this.#timer = undefined;
    this.#sentAt = Date.now();
    const { work, log } = this.#changed;
    const payload = formatPayload([...work], [...log]);
    work.clear();
    log.clear();
    await this.#notify(payload);
  }

  async #notify(payload: string): Promise<void> {
    this.sent++;
    const text = "select pg_notify($1, $2)";
    const values = [this.#channel, payload];
    try {
      if (this.#client) await this.#query(text, values);
      else await this.#options.database.run(text, ...values);
    } catch {
      // A hint that is lost costs the others a moment.
    }
  }

  /** Runs a statement on the connection that listens, after those before it. */
  #query(text: string, values: readonly unknown[] = [], limits: object = {}): Promise<void> {
    const client = this.#client;
    if (!client) return Promise.resolve();
    this.#sending = this.#sending.then(async () => {
      try {
        await client.query({ text, values, ...limits });
      } catch (error) {
        // A network that is gone closes nothing: another connection takes the place of this one.
        if (isAway(error)) findStream(client)?.destroy?.();
      }
    });
    return this.#sending;
  }

  /** One that only listens would not notice that nothing arrives any more. */
  #ping(): void {
    void this.#query("select 1", [], { query_timeout: PING_MS });
  }

  async #connect(pause: number = MIN_PAUSE_MS): Promise<void> {
    if (this.#client || this.#isConnecting || this.#isClosed) return;
    this.#isConnecting = true;
    const { pg, listenUrl } = this.#options;
    const client = new pg.Client(clientConfig(pg, listenUrl));
    let isBroken = false;
    const retry = (): void => {
      if (isBroken) return;
      isBroken = true;
      if (this.#client === client) this.#client = undefined;
      if (this.#isClosed) return;
      this.#reconnectTimer = setTimeout(
        () => void this.#connect(Math.min(pause * 2, MAX_PAUSE_MS)),
        pause,
      ).unref();
    };
    client.on("error", retry);
    client.on("end", retry);
    client.on("notification", ({ channel, payload = "" }) => {
      if (client !== this.#client) return;
      if (channel !== this.liveChannel) this.#receive(payload);
      else for (const listener of [...this.#liveListeners]) listener(payload);
    });
    try {
      await client.connect();
      await client.query(`listen ${this.#channel}`);
      if (this.#liveListeners.size > 0) await client.query(`listen ${this.liveChannel}`);
      // A connection that only listens keeps no program alive.
      findStream(client)?.unref?.();
      this.#client = client;
      this.#pingTimer ??= setInterval(() => this.#ping(), PING_MS).unref();
    } catch {
      await endClient(client);
      retry();
    } finally {
      this.#isConnecting = false;
    }
    if (this.#isClosed) {
      await endClient(client);
      return;
    }
    // What was sent while no connection listened is not known.
    if (this.#client !== client) return;
    for (const interest of ["work", "log"] as const) this.#call(interest, {});
    for (const listener of [...this.#connectListeners]) listener();
  }

  #receive(payload: string): void {
    const parsed = parsePayload(payload);
    const { by } = parsed;
    if (by !== undefined && by !== this.#id) {
      for (const listener of [...this.#messageListeners]) listener(parsed);
    }
    for (const [token, arrive] of this.#probes) if (payload.includes(token)) arrive();
    for (const interest of ["work", "log"] as const) {
      const sessions = parsed[interest];
      if (!Array.isArray(sessions)) continue;
      if (sessions.length === 0) this.#call(interest, {});
      for (const session of sessions) this.#call(interest, { session: String(session) });
    }
  }
}

/** `{"work": [...], "log": [...]}`; a list that is too long is empty: it is not known where. */
function formatPayload(work: readonly string[], log: readonly string[]): string {
  const parts = [
    ["work", work],
    ["log", log],
  ].filter(([, sessions]) => (sessions?.length ?? 0) > 0);
  const whole = JSON.stringify(Object.fromEntries(parts));
  if (Buffer.byteLength(whole) <= MAX_PAYLOAD_BYTES) return whole;
  return JSON.stringify(Object.fromEntries(parts.map(([interest]) => [interest, []])));
}

function parsePayload(payload: string): Readonly<Record<string, unknown>> {
  try {
    return toRecord(JSON.parse(payload));
  } catch {
    // Another program uses the channel.
    return {};
  }
}

/** Ends a connection, also where nothing answers any more. */
async function endClient(client: Pg.Client): Promise<void> {
  const timer = setTimeout(() => findStream(client)?.destroy?.(), END_MS);
  try {
    await client.end();
  } catch {
    // It was broken.
  } finally {
    clearTimeout(timer);
  }
}

/** The socket of a connection. */
function findStream(client: Pg.Client): Partial<Pick<Socket, "unref" | "destroy">> | undefined {
  const { connection } = client as { connection?: { stream?: Socket } };
  return connection?.stream;
}
