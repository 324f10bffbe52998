import { isRecord } from "@gyre/ai";
import {
  type AgentEnd,
  type AgentEvent,
  type AgentListener,
  type AgentMessage,
  withAnswer,
} from "@gyre/agent";
import { type Envelope, type Payload, ProtocolError, type WireClientApi } from "@gyre/protocol";
import type { ReaderState } from "../events/wire-event.ts";
import { WireEventReader } from "../events/wire-event-reader.ts";
import { RemoteStateMirror, type RemoteState } from "./remote-state.ts";
import { type KnownRun, RunWaits } from "./run-waits.ts";

/** What can be observed of a session beside its events. */
export interface FollowerObserver {
  /** The state was rebuilt from a snapshot: draw it again. */
  onSnapshot?: (state: RemoteState) => void;
  /** Settings of the session have changed: model, mode, tools. */
  onSettings?: (state: RemoteState) => void;
  /**
   * Called with what the host shows beside the conversation (`waiting`: the queued messages), whenever that has
   * changed. Given: the client asks for it.
   */
  onStatus?: (status: Payload) => void;
  /** The session was closed, or can no longer be reached. */
  onClosed?: (error: Error) => void;
}

export interface FollowerOptions extends FollowerObserver {
  /** Errors that no promise reports, such as those of listeners. Default: `console.error`. */
  onError?: (error: unknown, where: string) => void;
}

/** Gets what a follower passes on beside events. */
export interface FollowerHandler {
  /** The session is resumed on a new connection. */
  onResume(): void;
  /** A frame for this client alone. */
  onOwnFrame(type: string, payload: Payload): void;
}

/**
 * Follows one session over connections that come and go: events for listeners, a state, and the
 * ends of runs for callers that wait for them.
 */
export class SessionFollower {
  readonly #client: WireClientApi;
  readonly #stream: string;
  readonly #options: FollowerOptions;
  readonly #handler: FollowerHandler;
  readonly #mirror = new RemoteStateMirror();
  readonly #runs = new RunWaits();
  /** Replaced, never changed, so that an event goes to the listeners of the moment it arrived. */
  #listeners: readonly AgentListener[] = [];
  #observers: readonly FollowerObserver[];
  #reader = new WireEventReader();
  #epoch: string | undefined;
  /** The number of the last event. */
  #seq = 0;
  /** An event did not follow from those before it: a snapshot is needed. */
  #needsSnapshot = false;
  /** Why no more events arrive. */
  #end: Error | undefined;
  #stopListening: () => void = () => {};
  #waiting: { resolve: () => void; reject: (error: Error) => void; until: () => boolean }[] = [];

  constructor(
    peer: WireClientApi,
    stream: string,
    handler: FollowerHandler,
    options: FollowerOptions,
  ) {
    this.#client = peer;
    this.#stream = stream;
    this.#handler = handler;
    this.#options = options;
    this.#observers = [options];
  }

  get state(): RemoteState {
    return this.#mirror.state;
  }

  /** Begins with a snapshot, or without one. Settles when it follows the session. */
  async start(snapshot?: Payload): Promise<void> {
    if (snapshot) this.#load(snapshot);
    this.#stopListening = this.#client.listen(
      this.#stream,
      {
        onFrame: (frame) => this.#take(frame),
        resume: () => {
          this.#handler.onResume();
          return { type: "session_attach", payload: this.#getPosition() };
        },
        onLost: (error) => this.stop(error),
      },
      this.#seq,
    );
    try {
      // Also after an answer with a snapshot: it may have arrived on another connection than the
      // one that the session was created on.
      await this.ask("session_attach", this.#getPosition());
      await this.#waitUntil(() => this.#epoch !== undefined);
    } catch (error) {
      this.#stopListening();
      throw error;
    }
  }

  ask(type: string, payload: Payload = {}): Promise<Payload> {
    return this.#client.request(type, payload, { stream: this.#stream });
  }

  /**
   * The same for a request that must not be done in a session that was opened again since: it may have been done
   * before. Rejects with `stream_not_found` then. A request that is made while there is no connection cannot have
   * been done: it is for the session as it is found afterwards.
   */
  async askInEpoch(type: string, payload: Payload = {}): Promise<Payload> {
    const known = this.#epoch;
    const wasOffline = this.#client.state.type !== "ready";
    const ask = (): Promise<Payload> =>
      this.ask(type, { ...payload, ...(this.#epoch !== undefined && { epoch: this.#epoch }) });
    try {
      return await ask();
    } catch (error) {
      const isOther = error instanceof ProtocolError && error.code === "stream_not_found";
      if (!wasOffline || !isOther || this.#end) throw error;
      await this.#waitUntil(() => this.#epoch !== known);
      return await ask();
    }
  }

  /** Requests a run, and settles with its end. */
  run(type: string, payload: Payload): Promise<AgentEnd> {
    if (this.#end) return Promise.reject(this.#end);
    const begun = this.askInEpoch(type, payload).then(({ seq, isOver }) => {
      return isOver === true || typeof seq !== "number" ? "over" : seq;
    });
    const end = this.#runs.wait(begun);
    const look = (): void => this.#settleWaiting();
    end.then(look, look);
    return end.then((event) => withAnswer(event));
  }

  subscribe(listener: AgentListener): () => void {
    const entry: AgentListener = (event) => listener(event);
    this.#listeners = [...this.#listeners, entry];
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== entry);
    };
  }

  /** Calls the functions of `observer` from now on. The returned function ends that. */
  watch(observer: FollowerObserver): () => void {
    const hadStatus = this.#wantsStatus;
    const entry = { ...observer };
    this.#observers = [...this.#observers, entry];
    if (this.#wantsStatus && !hadStatus && !this.#end) {
      this.ask("session_attach", this.#getPosition()).catch((error: unknown) => {
        this.report(error, "asking for the status");
      });
    }
    return () => {
      this.#observers = this.#observers.filter((other) => other !== entry);
    };
  }

  waitForIdle(): Promise<void> {
    return this.#waitUntil(() => this.#runs.size === 0 && !this.#mirror.state.isStreaming);
  }

  /** Stops following. Pending waits are rejected with the error. */
  stop(error: Error): void {
    if (this.#end) return;
    this.#end = error;
    this.#stopListening();
    this.#runs.fail(error);
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#observe("onClosed", ({ onClosed }) => onClosed?.(error));
  }

  report(error: unknown, where: string): void {
    const { onError = logError } = this.#options;
    try {
      onError(error, where);
    } catch (problem) {
      logError(problem, `onError, for ${where}`);
    }
  }

  get #wantsStatus(): boolean {
    return this.#observers.some(({ onStatus }) => onStatus !== undefined);
  }

  #getPosition(): Payload {
    const isKnown = this.#epoch !== undefined && !this.#needsSnapshot;
    return {
      ...(isKnown && { after: this.#seq, epoch: this.#epoch }),
      ...(this.#wantsStatus && { status: true }),
    };
  }

  #take(frame: Envelope): void {
    const { type, seq, payload } = frame;
    if (type === "snapshot") this.#takeSnapshot(payload);
    else if (type === "session_status") {
      this.#observe("onStatus", ({ onStatus }) => onStatus?.(payload));
    } else if (seq === undefined) this.#handler.onOwnFrame(type, payload);
    else if (!this.#needsSnapshot && this.#epoch !== undefined) this.#takeEvent(frame, seq);
    this.#settleWaiting();
  }

  #takeEvent(frame: Envelope, seq: number): void {
    const { type, payload } = frame;
    this.#seq = seq;
    if (type === "done") {
      const what = `Session "${this.#stream}" was closed.`;
      return this.stop(new ProtocolError("session_not_found", what));
    }
    if (type === "session_update") {
      this.#mirror.update(payload);
      return this.#observe("onSettings", ({ onSettings }) => onSettings?.(this.state));
    }
    let events: AgentEvent[];
    try {
      events = this.#reader.read(frame);
    } catch (error) {
      this.report(error, `event ${seq}, "${type}"`);
      this.#needsSnapshot = true;
      this.ask("session_attach", this.#getPosition()).catch((problem: unknown) => {
        this.report(problem, "asking for a snapshot");
      });
      return;
    }
    for (const event of events) this.#publish(event, seq);
  }

  #publish(event: AgentEvent, seq: number): void {
    this.#mirror.apply(event);
    this.#notify(event);
    if (event.type === "agent_end") this.#runs.onEnd(seq, event);
  }

  #notify(event: AgentEvent): void {
    for (const listener of this.#listeners) {
      this.#call(`listener of "${event.type}"`, () => listener(event));
    }
  }

  #takeSnapshot(snapshot: Payload): void {
    const { epoch, seq, omitted, message } = snapshot;
    if (omitted === true) {
      // Another one would not fit either.
      const what = `The state of session "${this.#stream}" does not fit into a frame: ${String(message)}`;
      return this.stop(new ProtocolError("too_large", what));
    }
    const isSame = epoch === this.#epoch;
    // A repeat: a client that asks again before the snapshot arrives gets two.
    if (isSame && seq === this.#seq && !this.#needsSnapshot) return;
    const before = this.#seq;
    const isFirst = this.#epoch === undefined;
    const run = this.#load(snapshot);
    if (isFirst) return;
    if (!isSame) this.#runs.onReopened();
    const end = run?.end;
    // Listeners get the end of the last run even so, so that none waits forever.
    if (isSame && end && run.endSeq > before) this.#notify(end);
    this.#runs.onGap(this.#seq, run);
    this.#observe("onSnapshot", ({ onSnapshot }) => onSnapshot?.(this.state));
  }

  /** Loads a snapshot; returns the run that it reports. */
  #load(snapshot: Payload): (KnownRun & { endSeq: number }) | undefined {
    const { epoch, messages, seq, state, run } = snapshot;
    this.#epoch = typeof epoch === "string" ? epoch : "";
    this.#seq = typeof seq === "number" ? seq : 0;
    this.#needsSnapshot = false;
    this.#client.skipTo(this.#stream, this.#seq);
    // Messages are not checked: the server is trusted.
    const known = Array.isArray(messages) ? (messages as AgentMessage[]) : [];
    const wire = isRecord(state) ? (state as unknown as ReaderState) : undefined;
    const reader = (): WireEventReader =>
      new WireEventReader({ messages: known, ...(wire && { state: wire }) });
    this.#reader = reader();
    this.#mirror.load(snapshot, this.#reader.partial);
    if (!isRecord(run) || typeof run["after"] !== "number") return undefined;
    const { after, end } = run;
    if (!isRecord(end) || !isRecord(end["payload"])) return { after, endSeq: 0 };
    const [event] = reader().read({ type: "agent_end", payload: end["payload"] });
    const isEnd = event?.type === "agent_end";
    return { after, endSeq: Number(end["seq"]), ...(isEnd && { end: event }) };
  }

  #waitUntil(until: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#end) return reject(this.#end);
      if (until()) return resolve();
      this.#waiting.push({ resolve, reject, until });
    });
  }

  #settleWaiting(): void {
    const ready = this.#waiting.filter(({ until }) => until());
    this.#waiting = this.#waiting.filter((each) => !ready.includes(each));
    for (const { resolve } of ready) resolve();
  }

  #observe(where: string, call: (observer: FollowerObserver) => unknown): void {
    for (const observer of this.#observers) this.#call(where, () => call(observer));
  }

  /** Calls code of the application and reports its errors, also those of promises. */
  #call(where: string, run: () => unknown): void {
    const failed = (error: unknown): void => this.report(error, where);
    try {
      const given = run();
      if (given instanceof Promise) given.catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}

function logError(error: unknown, where: string): void {
  console.error(`${where}:`, error);
}
