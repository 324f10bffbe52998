import type { AgentMessage, QueueMode, QueueName } from "../contract/types.ts";

/** A message in a queue, with its id. */
export interface QueuedMessage {
  readonly id: string;
  readonly message: AgentMessage;
}

/** A change of a queue by the application. What a run has taken may still come back. */
export interface QueueChange {
  readonly queue: QueueName;
  /** What waits now, in order. */
  readonly messages: readonly QueuedMessage[];
  /** The ids of what the application has removed. */
  readonly removed: readonly string[];
}

/** What waited when an agent was saved. */
export interface QueuedMessages extends Readonly<Record<QueueName, readonly QueuedMessage[]>> {
  /** Ids up to this number may have been given before, and are not given again. */
  readonly made: number;
}

/** Messages that wait for the agent: first in, first out. They can be edited, moved and removed. */
export class MessageQueue {
  /** Read at each drain. */
  mode: QueueMode;
  readonly #name: QueueName;
  #items: QueuedMessage[];
  #made: number;
  /** A message that is put back keeps its id. */
  #ids: WeakMap<AgentMessage, string> | undefined;

  constructor(name: QueueName, mode: QueueMode = "one-at-a-time", saved?: QueuedMessages) {
    this.#name = name;
    this.mode = mode;
    this.#made = saved?.made ?? 0;
    this.#items = (saved?.[name] ?? []).map(({ id, message }) => this.#toItem(message, id));
  }

  get length(): number {
    return this.#items.length;
  }

  list(): readonly QueuedMessage[] {
    return this.#items.slice();
  }

  /** Adds to the end. Returns the id of the message. */
  push(message: AgentMessage): string {
    const item = this.#toItem(message);
    this.#items.push(item);
    return item.id;
  }

  /** Puts messages that could not be delivered back to the front, under their old ids. */
  putBack(messages: readonly AgentMessage[]): void {
    const items = messages.map((message) => {
      const id = this.#ids?.get(message);
      const isFree = !this.#items.some((item) => item.id === id);
      return this.#toItem(message, isFree ? id : undefined);
    });
    this.#items = [...items, ...this.#items];
  }

  /** Takes what the mode says: the first message, or all. */
  drain(): AgentMessage[] {
    const taken = this.#items.splice(0, this.mode === "all" ? this.#items.length : 1);
    return taken.map(({ message }) => message);
  }

  /** Removes a message and returns it; nothing if it is no longer queued. */
  remove(id: string): AgentMessage | undefined {
    const index = this.#items.findIndex((item) => item.id === id);
    return index < 0 ? undefined : this.#items.splice(index, 1)[0]?.message;
  }

  /** Replaces a message. Returns false if it is no longer queued. */
  edit(id: string, message: AgentMessage): boolean {
    const index = this.#items.findIndex((item) => item.id === id);
    if (index < 0) return false;
    this.#items[index] = this.#toItem(message, id);
    return true;
  }

  /** Moves a message to a place in the queue. Returns false if it is no longer queued. */
  move(id: string, place: number): boolean {
    const index = this.#items.findIndex((item) => item.id === id);
    const [item] = index < 0 ? [] : this.#items.splice(index, 1);
    if (!item) return false;
    this.#items.splice(Math.max(0, Math.min(place, this.#items.length)), 0, item);
    return true;
  }

  clear(): void {
    this.#items = [];
  }

  #toItem(message: AgentMessage, id = `${this.#name}-${++this.#made}`): QueuedMessage {
    (this.#ids ??= new WeakMap()).set(message, id);
    return { id, message };
  }
}

/** The two queues of an agent, and the runs that wait for a steering message. */
export class Queues {
  readonly #steering: MessageQueue;
  readonly #followUps: MessageQueue;
  readonly #onChange: ((change: QueueChange) => void) | undefined;
  /** Present while a run waits for a steering message. */
  #wakes: Set<() => void> | undefined;

  /** `onChange` is called when the application has changed a queue, not when a run has. */
  constructor(
    steering: MessageQueue,
    followUps: MessageQueue,
    onChange: ((change: QueueChange) => void) | undefined,
  ) {
    this.#steering = steering;
    this.#followUps = followUps;
    this.#onChange = onChange;
  }

  get(queue: QueueName): MessageQueue {
    return queue === "steering" ? this.#steering : this.#followUps;
  }

  get isEmpty(): boolean {
    return this.#steering.length === 0 && this.#followUps.length === 0;
  }

  push(queue: QueueName, message: AgentMessage): string {
    const id = this.report(queue, this.get(queue).push(message));
    if (queue === "steering") for (const wake of [...(this.#wakes ?? [])]) wake();
    return id;
  }

  edit(queue: QueueName, id: string, message: AgentMessage): boolean {
    return this.report(queue, this.get(queue).edit(id, message));
  }

  remove(queue: QueueName, id: string): AgentMessage | undefined {
    return this.report(queue, this.get(queue).remove(id), [id]);
  }

  move(queue: QueueName, id: string, place: number): boolean {
    return this.report(queue, this.get(queue).move(id, place));
  }

  clear(queue: QueueName): void {
    const removed = this.get(queue).list();
    this.get(queue).clear();
    this.report(
      queue,
      removed.length > 0,
      removed.map(({ id }) => id),
    );
  }

  /** Calls `wake` with each steering message, until the function that it returns is called. */
  onSteering(wake: () => void): () => void {
    const wakes = (this.#wakes ??= new Set());
    wakes.add(wake);
    return () => {
      wakes.delete(wake);
      if (wakes.size === 0) this.#wakes = undefined;
    };
  }

  /** Reports a change, if there was one. */
  report<T>(queue: QueueName, change: T, removed: readonly string[] = []): T {
    if (change) this.#onChange?.({ queue, messages: this.get(queue).list(), removed });
    return change;
  }
}
