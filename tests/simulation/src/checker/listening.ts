import type { AgentEvent } from "@gyre/agent";
import { DEFAULT_LISTENER_TIMEOUT_MS } from "../world/surroundings.ts";
import type { World } from "../world/world.ts";

interface Listening {
  heard: number;
  /** Since when it has been busy with its last event, if it is. */
  busySince: number | undefined;
}

/** R20, R25: each listener hears every event, after the sink and after those before it. */
export class ListenerOrder {
  readonly #world: World;
  #events: AgentEvent[] = [];
  #listeners: Listening[] = [];

  constructor(world: World) {
    this.#world = world;
    this.begun();
  }

  begun(): void {
    this.#events = [];
    this.#listeners = this.#world.plan.listeners.map(() => ({ heard: 0, busySince: undefined }));
  }

  taken(event: AgentEvent): void {
    const behind = this.#listeners.findIndex(({ heard }) => heard < this.#events.length);
    if (behind >= 0) {
      this.#world.fail(
        "R20",
        `${event.type} is emitted before listener ${behind} heard the last event`,
      );
    }
    this.#checkPatience(this.#listeners.length, event);
    this.#events.push(event);
  }

  heard(index: number, event: AgentEvent): void {
    const listener = this.#listeners[index];
    if (!listener) return;
    const isEnd = event.type === "agent_end" && event.stop === "sink";
    if (isEnd && listener.heard === this.#events.length) this.#events.push(event);
    if (this.#events[listener.heard] !== event) {
      this.#world.fail("R20", `listener ${index} hears ${event.type} out of turn`);
    }
    const before = this.#listeners[index - 1];
    if (before && before.heard <= listener.heard) {
      this.#world.fail("R20", `listener ${index} hears ${event.type} before listener ${index - 1}`);
    }
    this.#checkPatience(index, event);
    listener.heard++;
    listener.busySince = this.#world.now;
  }

  done(index: number): void {
    const listener = this.#listeners[index];
    if (listener) listener.busySince = undefined;
  }

  /** Those before must be done, or have had their time. */
  #checkPatience(index: number, event: AgentEvent): void {
    const { listenerTimeoutMs = DEFAULT_LISTENER_TIMEOUT_MS } = this.#world.plan;
    for (const [place, { busySince }] of this.#listeners.entries()) {
      if (place >= index || busySince === undefined) continue;
      if (this.#world.now - busySince >= listenerTimeoutMs) continue;
      this.#world.fail("R20", `${event.type} goes on while listener ${place} is busy`);
    }
  }

  /** When a run is over, everybody has heard the end. */
  finished(endedBySink: boolean): void {
    for (const [index, { heard }] of this.#listeners.entries()) {
      if (heard === this.#events.length) continue;
      this.#world.fail(
        "R20",
        `listener ${index} has heard ${heard} of ${this.#events.length} events`,
      );
    }
    const last = this.#events.at(-1);
    if (last) this.#checkPatience(this.#listeners.length, last);
    if (this.#listeners.length === 0) return;
    if (last?.type !== "agent_end")
      this.#world.fail("R1", "the listeners have not heard agent_end");
    else if (endedBySink !== (last.stop === "sink")) {
      this.#world.fail("R25", `the listeners heard the run end "${last.stop}"`);
    }
  }
}
