import { randomUUID } from "node:crypto";
import type { Bus, Packet } from "../contract/bus.ts";
import { isRecord } from "@gyre/ai";
import { type LargePacket, listTexts, pack, parsePacket } from "../live/packets.ts";
import { type Database, NOW } from "./driver/database.ts";
import { MAX_PAYLOAD_BYTES, type Notifier } from "./notifier.ts";

/** How often a process repeats what it follows. */
const RENEW_MS = 10_000;
/** After this time without a repetition it does not follow any more. */
const EXPIRE_MS = 25_000;
/** Sessions that are followed in this time are announced together. */
const ANNOUNCE_MS = 10;
/** A notification takes a lock of the whole server. */
const MAX_NOTIFICATIONS_A_SECOND = 200;
/** Of one sending: where there is more, it is dropped, and those that follow see the gap. */
const MAX_NOTIFICATIONS = 200;
/** Above this share of the server's queue nothing is sent: the queue is for hints. */
const MAX_QUEUE_USAGE = 0.25;
/** How often a full queue is looked at again. */
const LOOK_AGAIN_MS = 1_000;
/** How long something that is too large for a notification can be asked for. */
const KEEP_MS = 60_000;
/** What a notification has beside its packets. */
const ENVELOPE_BYTES = 80;
/** Sessions that a notification names: also with ids of 512 bytes they fit. */
const MAX_NAMED = 13;

const FOLLOW = `insert into gyre_watch (session, watcher, until)
  select session, $1, ${NOW} + $3::bigint from unnest($2::text[]) session
  on conflict (session, watcher) do update set until = excluded.until`;

/** The setting holds for this statement alone, also behind a pooler. */
const SEND = `select set_config('synchronous_commit', 'off', true), pg_notify($1, payload),
  pg_notification_queue_usage() as usage from unnest($2::text[]) payload`;

type KeptPacket = [session: string, id: number];

/**
 * Live events by NOTIFY, on a connection of their own. Processes announce what they follow in a
 * table, for those that come later, and by a notification.
 */
export class PostgresBus implements Bus {
  readonly #id = randomUUID();
  readonly #database: Database;
  readonly #notifier: Notifier;
  readonly #followed = new Map<string, Set<(packet: Packet) => void>>();
  #added = new Set<string>();
  #removed = new Set<string>();
  #announceTimer: NodeJS.Timeout | undefined;
  #renewTimer: NodeJS.Timeout | undefined;
  #announcing: Promise<void> = Promise.resolve();
  #stopListening: (() => void)[] = [];
  /** Packets come in order, also where some are fetched. */
  #receiving: Promise<void> | undefined;
  /** By session and process: until when it follows, by the clock of this process. */
  readonly #followers = new Map<string, Map<string, number>>();
  #onWanted: ((session: string) => void) | undefined;
  #usage = 0;
  /** Notifications that were sent, and packets that were dropped, for measurements. */
  readonly stats = { sent: 0, dropped: 0 };

  /** `database` is for the bus alone. */
  constructor(database: Database, notifier: Notifier) {
    this.#database = database;
    this.#notifier = notifier;
  }

  follow(session: string, listener: (packet: Packet) => void): () => void {
    const listeners = this.#followed.get(session) ?? new Set();
    this.#followed.set(session, listeners);
    listeners.add(listener);
    this.#added.add(session);
    this.#removed.delete(session);
    this.#announceSoon();
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#followed.get(session) !== listeners) return;
      this.#followed.delete(session);
      this.#added.delete(session);
      this.#removed.add(session);
      this.#announceSoon();
    };
  }

  ask(session: string): void {
    void this.#notifier.post({ ask: [session] });
  }

  serve(onWanted: (session: string) => void): () => void {
    this.#onWanted = onWanted;
    const timer = setInterval(() => void this.#readFollowers(), RENEW_MS).unref();
    const stops = [
      this.#notifier.listenToMessages((message) => this.#receiveMessage(message)),
      // What was announced before is in the table.
      this.#notifier.onConnect(() => void this.#readFollowers()),
      () => clearInterval(timer),
    ];
    return () => {
      this.#onWanted = undefined;
      this.#followers.clear();
      for (const stop of stops) stop();
    };
  }

  isFollowed(session: string): boolean {
    const followers = this.#followers.get(session);
    if (!followers) return false;
    const now = performance.now();
    for (const [follower, until] of followers) if (until < now) followers.delete(follower);
    if (followers.size === 0) this.#followers.delete(session);
    return followers.size > 0;
  }

  async send(packets: readonly Packet[]): Promise<number> {
    try {
      if (this.#usage > MAX_QUEUE_USAGE) {
        this.stats.dropped += packets.length;
        const row = await this.#database.first<{ usage: number }>(
          "select pg_notification_queue_usage() as usage",
        );
        this.#usage = row?.usage ?? 0;
        return this.#usage > MAX_QUEUE_USAGE ? LOOK_AGAIN_MS : 0;
      }
      const { texts, large } = pack(packets, MAX_PAYLOAD_BYTES - ENVELOPE_BYTES);
      const named = await this.#keep(large);
      const payloads = [
        ...texts.map((text) => `{"by":"${this.#id}","packets":${text}}`),
        ...split(named).map((kept) => JSON.stringify({ by: this.#id, kept })),
      ];
      const sent = payloads.slice(0, MAX_NOTIFICATIONS);
      this.stats.dropped += payloads.length - sent.length;
      this.stats.sent += sent.length;
      const rows = await this.#database.all<{ usage: number }>(
        SEND,
        this.#notifier.liveChannel,
        sent,
      );
      this.#usage = rows.at(-1)?.usage ?? 0;
      return (sent.length * 1_000) / MAX_NOTIFICATIONS_A_SECOND;
    } catch {
      // The database is away: those that follow see the gap.
      this.stats.dropped += packets.length;
      return LOOK_AGAIN_MS;
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#announceTimer);
    clearInterval(this.#renewTimer);
    for (const stop of this.#stopListening) stop();
    await this.#announcing;
    await this.#database.close();
  }

  /** Puts aside what is too large for a notification; those that follow fetch it by its number. */
  async #keep(large: readonly LargePacket[]): Promise<KeptPacket[]> {
    if (large.length === 0) return [];
    const rows = await this.#database.all<{ session: string; id: number }>(
      `with old as (delete from gyre_live where at < ${NOW} - $1::bigint)
        insert into gyre_live (session, data, at)
        select session, data, ${NOW} from unnest($2::text[], $3::text[]) as l(session, data)
        returning session, id`,
      ...[KEEP_MS, large.map(({ session }) => session), large.map(({ data }) => data)],
    );
    return rows.map(({ session, id }) => [session, id]);
  }

  #announceSoon(): void {
    if (this.#stopListening.length === 0) {
      this.#stopListening = [
        this.#notifier.listenToLive((payload) => this.#receive(payload)),
        // What was sent while no connection listened is lost.
        this.#notifier.onConnect(() => this.#announceAll()),
      ];
      this.#renewTimer = setInterval(() => this.#announceAll(), RENEW_MS).unref();
    }
    this.#announceTimer ??= setTimeout(() => {
      this.#announceTimer = undefined;
      this.#announcing = this.#announcing.then(() => this.#announce());
    }, ANNOUNCE_MS).unref();
  }

  #announceAll(): void {
    for (const session of this.#followed.keys()) this.#added.add(session);
    if (this.#added.size > 0) this.#announceSoon();
  }

  async #announce(): Promise<void> {
    const [added, removed] = [[...this.#added], [...this.#removed]];
    this.#added = new Set();
    this.#removed = new Set();
    try {
      if (added.length > 0) await this.#database.run(FOLLOW, this.#id, added, EXPIRE_MS);
      await this.#database.run(
        `delete from gyre_watch where until < ${NOW} or (watcher = $1 and session = any($2))`,
        ...[this.#id, removed],
      );
    } catch {
      // It is announced again with what is followed then.
    }
    for (const follow of split(added)) await this.#notifier.post({ watcher: this.#id, follow });
    for (const leave of split(removed)) await this.#notifier.post({ watcher: this.#id, leave });
  }

  #receiveMessage({ watcher, follow, leave, ask }: Readonly<Record<string, unknown>>): void {
    if (typeof watcher === "string") {
      for (const session of listTexts(follow)) this.#addFollower(session, watcher);
      for (const session of listTexts(leave)) this.#followers.get(session)?.delete(watcher);
    }
    for (const session of listTexts(ask)) this.#onWanted?.(session);
  }

  #addFollower(session: string, watcher: string, ms: number = EXPIRE_MS): void {
    const followers = this.#followers.get(session) ?? new Map<string, number>();
    this.#followers.set(session, followers);
    const isNew = !followers.has(watcher);
    followers.set(watcher, performance.now() + ms);
    if (isNew) this.#onWanted?.(session);
  }

  async #readFollowers(): Promise<void> {
    try {
      const rows = await this.#database.all<{ session: string; watcher: string; left: number }>(
        `select session, watcher, until - ${NOW} as left from gyre_watch
          where until > ${NOW} and watcher <> $1`,
        this.#id,
      );
      if (!this.#onWanted) return;
      for (const { session, watcher, left } of rows) this.#addFollower(session, watcher, left);
    } catch {
      // It is read again soon.
    }
  }

  #receive(payload: string): void {
    const parsed: unknown = JSON.parse(payload);
    if (!isRecord(parsed) || parsed["by"] === this.#id) return;
    const { packets, kept } = parsed;
    const wanted = Array.isArray(kept) ? this.#listWanted(kept) : [];
    if (wanted.length > 0 || this.#receiving) {
      const receiving = (this.#receiving ?? Promise.resolve()).then(async () => {
        this.#pass(wanted.length > 0 ? await this.#fetch(wanted) : packets);
        if (this.#receiving === receiving) this.#receiving = undefined;
      });
      this.#receiving = receiving;
    } else this.#pass(packets);
  }

  #listWanted(kept: readonly unknown[]): number[] {
    return kept.flatMap((each) => {
      const [session, id]: unknown[] = Array.isArray(each) ? each : [];
      return typeof id === "number" && this.#followed.has(String(session)) ? [id] : [];
    });
  }

  async #fetch(ids: readonly number[]): Promise<unknown[]> {
    try {
      const rows = await this.#database.all<{ data: string }>(
        "select data from gyre_live where id = any($1) order by id",
        ids,
      );
      return rows.flatMap(({ data }): unknown[] => JSON.parse(data));
    } catch {
      // The gap shows.
      return [];
    }
  }

  #pass(packets: unknown): void {
    if (!Array.isArray(packets)) return;
    for (const value of packets) {
      // Most are of sessions that others follow.
      const listeners = Array.isArray(value) ? this.#followed.get(String(value[0])) : undefined;
      const packet = listeners && parsePacket(value);
      if (packet) for (const listener of [...listeners]) listener(packet);
    }
  }
}

function split<T>(items: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let from = 0; from < items.length; from += MAX_NAMED) {
    parts.push(items.slice(from, from + MAX_NAMED));
  }
  return parts;
}
