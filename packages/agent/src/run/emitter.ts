import { errorMessage, isThenable } from "@gyre/ai";
import type { AgentEvent, AgentSink } from "../contract/types.ts";

/** The sink threw, or did not settle in time; nothing was emitted after `event`. */
export class SinkError extends Error {
  readonly code = "sink";
  readonly event: AgentEvent;
  constructor(event: AgentEvent, cause: unknown) {
    const why = errorMessage(cause);
    super(`The sink failed on "${event.type}": ${why}`, { cause });
    this.name = "SinkError";
    this.event = event;
  }
}

/** Events about something that goes on: a newer one makes an older one superfluous. */
export type ProgressEvent = Extract<AgentEvent, { type: "tool_execution_update" | "waiting" }>;

/**
 * Puts events into the sink one after the other, also when tools that run together
 * emit at the same time. Costs no promise where the sink answers at once. After the
 * first failure the sink is not called again and every `emit` throws. Listeners come
 * after the sink; they have timeouts of their own, and never throw.
 */
export class Emitter {
  readonly #sink: AgentSink;
  readonly #deadline: (wait: Promise<void>) => Promise<void>;
  readonly #onFailure: (error: SinkError) => void;
  readonly #listeners: AgentSink | undefined;
  #tail: Promise<void> | undefined;
  #failure: SinkError | undefined;
  #waitingProgress: Map<string, ProgressEvent> | undefined;

  constructor(
    sink: AgentSink,
    deadline: (wait: Promise<void>) => Promise<void>,
    onFailure: (error: SinkError) => void,
    listeners?: AgentSink,
  ) {
    this.#sink = sink;
    this.#deadline = deadline;
    this.#onFailure = onFailure;
    this.#listeners = listeners;
  }

  /** Settles when the sink has taken the event. */
  emit(event: AgentEvent): void | Promise<void> {
    if (this.#failure) throw this.#failure;
    return this.#tail
      ? this.#enqueue(() => this.#deliver(event))
      : this.#track(this.#deliver(event));
  }

  /** Emits progress; while it waits for the sink, a newer one takes its place. */
  emitProgress(event: ProgressEvent): void {
    if (this.#failure) return;
    const id = event.type === "waiting" ? "" : event.toolCallId;
    if (this.#waitingProgress?.has(id)) {
      this.#waitingProgress.set(id, event);
      return;
    }
    if (!this.#tail) {
      try {
        this.#track(this.#deliver(event))?.catch(() => {});
      } catch {
        // A failure is kept, and thrown by the next emit.
      }
      return;
    }
    const waiting = (this.#waitingProgress ??= new Map());
    waiting.set(id, event);
    this.#enqueue(() => {
      const newest = waiting.get(id);
      waiting.delete(id);
      return newest && this.#deliver(newest);
    }).catch(() => {});
  }

  #enqueue(deliver: () => void | Promise<void>): Promise<void> {
    const next = (this.#tail ?? Promise.resolve()).then(() => {
      if (this.#failure) throw this.#failure;
      return deliver();
    });
    void this.#track(next);
    return next;
  }

  #track(delivery: void | Promise<void>): void | Promise<void> {
    if (!delivery) return undefined;
    const settled: Promise<void> = delivery.then(
      () => {},
      () => {},
    );
    const tail = settled.then(() => {
      if (this.#tail === tail) this.#tail = undefined;
    });
    this.#tail = tail;
    return delivery;
  }

  #deliver(event: AgentEvent): void | Promise<void> {
    let taken: void | Promise<void>;
    try {
      taken = this.#sink(event);
    } catch (cause) {
      this.#fail(event, cause);
    }
    if (taken === undefined || !isThenable(taken)) return this.#listeners?.(event);
    const accepted = this.#deadline(taken).catch((cause: unknown) => this.#fail(event, cause));
    return this.#listeners ? accepted.then(() => this.#listeners?.(event)) : accepted;
  }

  #fail(event: AgentEvent, cause: unknown): never {
    this.#failure = new SinkError(event, cause);
    this.#onFailure(this.#failure);
    throw this.#failure;
  }
}
