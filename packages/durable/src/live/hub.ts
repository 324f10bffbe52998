import type { AgentEvent } from "@gyre/agent";
import { CompactEventReader } from "@gyre/ai/stream";
import type { Bus } from "../contract/bus.ts";
import type { RunEvent } from "../contract/types.ts";
import { LiveFeed } from "./feed.ts";
import { MessageSoFar } from "./message-so-far.ts";
import { LiveSource } from "./source.ts";
import type { LiveState } from "./state.ts";

/** Events of this time are sent together. */
const JOIN_MS = 50;
/** A run that a worker of this process claims in this time needs no other process. */
const FOLLOW_AFTER_MS = 20;

/**
 * An event that is not stored, or a whole message so far, for a listener that has not seen all of
 * it. `base`: the entry of the log that it follows.
 */
export type LiveEvent = { readonly activation: number; readonly base: number } & (
  | { readonly event: AgentEvent }
  | { readonly whole: MessageSoFar }
);

type LiveListener = (event: LiveEvent) => void;

/** What is known of a session in this process. */
interface LiveSession {
  readonly listeners: Set<LiveListener>;
  source?: LiveSource;
  feed?: LiveFeed;
  unfollow?: () => void;
}

/**
 * Passes events that are not stored to those that watch: in this process at once, to other processes
 * joined, and only where one of them watches.
 */
export class LiveHub {
  readonly #bus: Bus;
  readonly #sessions = new Map<string, LiveSession>();
  readonly #dirty = new Set<LiveSource>();
  #servers = 0;
  #stopServing: (() => void) | undefined;
  #sendTimer: NodeJS.Timeout | undefined;
  #isSending = false;
  #sendAt = 0;
  #willFollow = false;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** A worker of this process begins to work: it sends to other processes what they watch. */
  serve(): () => void {
    this.#servers++;
    this.#stopServing ??= this.#bus.serve((session) => this.#sendWhole(session));
    return () => {
      if (--this.#servers > 0) return;
      this.#stopServing?.();
      this.#stopServing = undefined;
    };
  }

  /** An activation of a session begins in this process. */
  open(session: string, token: number): LiveSource {
    const source = new LiveSource(session, token, (event) => this.#pass(event, source));
    this.#find(session).source = source;
    return source;
  }

  close(source: LiveSource): void {
    this.#dirty.delete(source);
    const live = this.#sessions.get(source.session);
    if (live?.source !== source) return;
    delete live.source;
    this.#drop(source.session);
    if (live.listeners.size > 0) this.#followSoon();
  }

  /** Whether a run of a session is watched, here or in another process. */
  isWatched(session: string): boolean {
    const here = this.#sessions.get(session)?.listeners.size ?? 0;
    return here > 0 || this.#bus.isFollowed(session);
  }

  /**
   * Calls the listener with live events; `seq` is that of the entry which they follow. A message so
   * far comes as events from its beginning, perhaps once more.
   */
  listen(session: string, listener: (event: RunEvent) => void): () => void {
    return this.follow(session, (live) => {
      for (const event of listEvents(live)) listener(event);
    });
  }

  /** Calls the listener with what goes on now, and with what follows. */
  follow(session: string, listener: LiveListener): () => void {
    const { listeners } = this.#find(session);
    listeners.add(listener);
    this.catchUp(session, listener);
    this.#followSoon();
    return () => {
      listeners.delete(listener);
      this.#drop(session);
    };
  }

  /** Calls a listener with all of what goes on now. */
  catchUp(session: string, listener: LiveListener): void {
    const { source, feed } = this.#sessions.get(session) ?? {};
    const from = source ?? feed;
    if (from) passWhole(from, [listener]);
  }

  #find(session: string): LiveSession {
    const live = this.#sessions.get(session) ?? { listeners: new Set() };
    this.#sessions.set(session, live);
    return live;
  }

  /** Forgets a session that nothing here works on or watches. */
  #drop(session: string): void {
    const live = this.#sessions.get(session);
    if (!live || live.listeners.size > 0) return;
    live.unfollow?.();
    delete live.unfollow;
    delete live.feed;
    if (!live.source) this.#sessions.delete(session);
  }

  /** Returns whether the event is to be sent. */
  #pass(event: AgentEvent, source: LiveSource): boolean {
    const { session, token: activation, base } = source;
    const isStored = event.type === "message_end" || event.type === "tool_execution_end";
    if (!isStored) {
      for (const listener of [...(this.#sessions.get(session)?.listeners ?? [])]) {
        listener({ activation, base, event });
      }
    }
    const isSent = this.#servers > 0 && this.#bus.isFollowed(session);
    if (isSent) this.#sendSoon(source);
    return isSent;
  }

  #sendWhole(session: string): void {
    const source = this.#sessions.get(session)?.source;
    if (!source) return;
    source.isWanted = true;
    this.#sendSoon(source);
  }

  #sendSoon(source: LiveSource): void {
    this.#dirty.add(source);
    if (this.#isSending || this.#sendTimer) return;
    const wait = Math.max(0, this.#sendAt - performance.now());
    this.#sendTimer = setTimeout(() => void this.#send(), wait).unref();
  }

  async #send(): Promise<void> {
    this.#sendTimer = undefined;
    this.#isSending = true;
    const from = performance.now();
    const packets = [...this.#dirty].flatMap((source) => source.takePackets());
    this.#dirty.clear();
    const wait = packets.length > 0 ? await this.#bus.send(packets) : 0;
    this.#sendAt = from + Math.max(JOIN_MS, wait);
    this.#isSending = false;
    const [next] = this.#dirty;
    if (next) this.#sendSoon(next);
  }

  #followSoon(): void {
    if (this.#willFollow) return;
    this.#willFollow = true;
    setTimeout(() => this.#followAll(), FOLLOW_AFTER_MS).unref();
  }

  #followAll(): void {
    this.#willFollow = false;
    for (const [session, live] of this.#sessions) {
      if (live.listeners.size === 0 || live.source || live.unfollow) continue;
      const feed = this.#createFeed(session, live);
      live.feed = feed;
      live.unfollow = this.#bus.follow(session, (packet) => feed.receive(packet));
    }
  }

  #createFeed(session: string, { listeners }: LiveSession): LiveFeed {
    const feed: LiveFeed = new LiveFeed({
      onEvent: (event) => {
        const { token: activation, base } = feed;
        for (const listener of [...listeners]) listener({ activation, base, event });
      },
      onWhole: () => passWhole(feed, [...listeners]),
      ask: () => this.#bus.ask(session),
    });
    return feed;
  }
}

function listEvents(live: LiveEvent): RunEvent[] {
  const { activation, base: seq } = live;
  if ("event" in live) return [{ seq, activation, event: live.event }];
  const reader = new CompactEventReader(live.whole.head);
  const { partial: message } = reader;
  const updates = live.whole.list().map((each): AgentEvent => {
    return { type: "message_update", message, assistantMessageEvent: reader.read(each) };
  });
  const start: AgentEvent = { type: "message_start", message };
  return [start, ...updates].map((event) => ({ seq, activation, event }));
}

function passWhole(
  { state, token: activation, base }: { state: LiveState; token: number; base: number },
  listeners: readonly LiveListener[],
): void {
  const { message } = state;
  const head = { activation, base };
  for (const listener of listeners) {
    if (message) listener({ ...head, whole: new MessageSoFar(message.head, message.list()) });
    for (const event of state.listCalls()) {
      listener({ ...head, event: { ...event, args: state.readArgs(event) } });
    }
  }
}
