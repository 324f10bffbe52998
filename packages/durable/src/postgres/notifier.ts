import { createHash, randomUUID } from "node:crypto";
import type * as Pg from "pg";
import type { Hint, Interest } from "../contract/store.ts";
import { clientConfig, type Database } from "./database.ts";

/** A process sends at most one notification in this time: each takes a lock of the whole server. */
const MIN_GAP_MS = 20;
/** Postgres takes payloads below 8,000 bytes. */
const MAX_PAYLOAD_BYTES = 7_900;
const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

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
  readonly #listeners: Record<Interest, Set<(hint: Hint) => void>> = {
    work: new Set(),
    log: new Set(),
  };
  readonly #probes = new Map<string, () => void>();
  readonly #changed: Record<Interest, Set<string>> = { work: new Set(), log: new Set() };
  #client: Pg.Client | undefined;
  #isConnecting = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #reconnectTimer: NodeJS.Timeout | undefined;
  #sentAt = 0;
  /** Notifications that were sent, for measurements. */
  sent = 0;

  constructor(options: NotifierOptions) {
    this.#options = options;
    const hash = createHash("sha256").update(options.schema).digest("hex").slice(0, 16);
    this.#channel = `gyre_${hash}`;
  }

  listen(interest: Interest, listener: (hint: Hint) => void): () => void {
    this.#listeners[interest].add(listener);
    void this.#connect();
    return () => this.#listeners[interest].delete(listener);
  }

  /** Reports a change to listeners here at once, and to other processes soon. */
  notify(interest: Interest, session: string): void {
    this.#call(interest, { session });
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
    if (this.#changed.work.size > 0) await this.#send();
    await this.#client?.end().catch(() => {});
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
    this.sent++;
    try {
      // On the connection that listens, which recognizes its own.
      if (this.#client) {
        await this.#client.query({
          text: "select pg_notify($1, $2)",
          values: [this.#channel, payload],
        });
      } else {
        await this.#options.database.run("select pg_notify($1, $2)", this.#channel, payload);
      }
    } catch {
      // A hint that is lost costs the others a moment.
    }
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
    client.on("notification", ({ payload = "" }) => this.#receive(payload, client));
    try {
      await client.connect();
      await client.query(`listen ${this.#channel}`);
      // A connection that only listens keeps no program alive.
      unrefClient(client);
      this.#client = client;
    } catch {
      await client.end().catch(() => {});
      retry();
    } finally {
      this.#isConnecting = false;
    }
    if (this.#isClosed) {
      await client.end().catch(() => {});
      return;
    }
    // What was sent while no connection listened is not known.
    if (this.#client === client)
      for (const interest of ["work", "log"] as const) this.#call(interest, {});
  }

  #receive(payload: string, client: Pg.Client): void {
    if (client !== this.#client) return;
    for (const [token, arrive] of this.#probes) if (payload.includes(token)) arrive();
    for (const [interest, sessions] of parsePayload(payload)) {
      if (sessions.length === 0) this.#call(interest, {});
      for (const session of sessions) this.#call(interest, { session });
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

function parsePayload(payload: string): [Interest, string[]][] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(payload);
  } catch {
    // Another program uses the channel.
    return [];
  }
  if (typeof parsed !== "object" || parsed === null) return [];
  return Object.entries(parsed).filter(
    (entry): entry is [Interest, string[]] =>
      (entry[0] === "work" || entry[0] === "log") && Array.isArray(entry[1]),
  );
}

function unrefClient(client: Pg.Client): void {
  const { connection } = client as { connection?: { stream?: { unref?: () => void } } };
  connection?.stream?.unref?.();
}
