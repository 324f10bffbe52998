import type { AgentMessage, QueueMode } from "./contract/types.ts";

/** A message that waits, with a name of its own to speak of it by. */
export interface QueuedMessage {
  readonly id: string;
  readonly message: AgentMessage;
}

/** Messages that wait for the agent: first in, first out, and open to a change of mind. */
export class MessageQueue {
  /** Read at each drain. */
  mode: QueueMode;
  readonly #name: string;
  #items: QueuedMessage[] = [];
  #made = 0;
  /** So that a message that comes back has the name that it went with. */
  #ids: WeakMap<AgentMessage, string> | undefined;

  constructor(name: string, mode: QueueMode) {
    this.#name = name;
    this.mode = mode;
  }

  get length(): number {
    return this.#items.length;
  }

  list(): readonly QueuedMessage[] {
    return this.#items.slice();
  }

  /** Adds to the end; the answer names the message for as long as it waits. */
  push(message: AgentMessage): string {
    const item = this.#named(message);
    this.#items.push(item);
    return item.id;
  }

  /** Puts back at the front what could not be delivered, under the name that it had. */
  putBack(messages: readonly AgentMessage[]): void {
    const items = messages.map((message) => {
      const id = this.#ids?.get(message);
      const isFree = !this.#items.some((item) => item.id === id);
      return this.#named(message, isFree ? id : undefined);
    });
    this.#items = [...items, ...this.#items];
  }

  /** What is due by the mode: the first message, or all. */
  drain(): AgentMessage[] {
    const taken = this.#items.splice(0, this.mode === "all" ? this.#items.length : 1);
    return taken.map(({ message }) => message);
  }

  /** Takes a message back; nothing if it is not waiting any more. */
  remove(id: string): AgentMessage | undefined {
    const index = this.#items.findIndex((item) => item.id === id);
    return index < 0 ? undefined : this.#items.splice(index, 1)[0]?.message;
  }

  /** Changes a message that waits; answers whether it still did. */
  edit(id: string, message: AgentMessage): boolean {
    const index = this.#items.findIndex((item) => item.id === id);
    if (index < 0) return false;
    this.#items[index] = this.#named(message, id);
    return true;
  }

  /** Moves a message to a place in the queue; answers whether it still waited. */
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

  #named(message: AgentMessage, id = `${this.#name}-${++this.#made}`): QueuedMessage {
    (this.#ids ??= new WeakMap()).set(message, id);
    return { id, message };
  }
}
