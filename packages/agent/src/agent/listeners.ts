import { isThenable, systemClock } from "@gyre/ai";
import { contain, warn } from "../contract/contain.ts";
import type { AgentEvent } from "../contract/types.ts";
import { settleWithin } from "../run/hooks.ts";
import { type AgentListener, type AgentOptions, DEFAULT_LISTENER_TIMEOUT_MS } from "./options.ts";

const NO_LISTENERS: readonly AgentListener[] = [];

/** Those who listen to an agent. What one throws, or a promise that never settles, is reported. */
export class Listeners {
  readonly #options: Pick<AgentOptions, "clock" | "listenerTimeoutMs" | "onError">;
  /** Replaced, never changed: an event goes to the listeners that were subscribed when it came. */
  #listeners: readonly AgentListener[] = NO_LISTENERS;
  #calling = 0;

  constructor(options: Pick<AgentOptions, "clock" | "listenerTimeoutMs" | "onError">) {
    this.#options = options;
  }

  /** Whether a listener is being called right now. */
  get isCalling(): boolean {
    return this.#calling > 0;
  }

  /** Returns a function that removes it. */
  add(listener: AgentListener): () => void {
    const entry: AgentListener = (event) => listener(event);
    this.#listeners = [...this.#listeners, entry];
    return () => {
      this.#listeners = this.#listeners.filter((other) => other !== entry);
    };
  }

  /** Calls them in order, and waits for those that answer with a promise. */
  notify(event: AgentEvent): void | Promise<void> {
    return this.#notifyFrom(0, event, this.#listeners);
  }

  #notifyFrom(
    from: number,
    event: AgentEvent,
    listeners: readonly AgentListener[],
  ): void | Promise<void> {
    for (let index = from; index < listeners.length; index++) {
      const given = this.#call(listeners[index] as AgentListener, event);
      if (given) {
        return this.#settle(given, event).then(() => this.#notifyFrom(index + 1, event, listeners));
      }
    }
    return undefined;
  }

  #call(listener: AgentListener, event: AgentEvent): Promise<void> | undefined {
    this.#calling++;
    try {
      const given = listener(event);
      return isThenable(given) ? given : undefined;
    } catch (error) {
      this.#report(error, event);
      return undefined;
    } finally {
      this.#calling--;
    }
  }

  #settle(given: Promise<void>, event: AgentEvent): Promise<void> {
    const { clock = systemClock, listenerTimeoutMs: ms = DEFAULT_LISTENER_TIMEOUT_MS } =
      this.#options;
    const late = `It had not settled after ${ms} ms; the run goes on without it.`;
    return settleWithin(clock, ms, given, late, (error) => this.#report(error, event));
  }

  #report(error: unknown, { type }: AgentEvent): void {
    const where = `listener of "${type}"`;
    const { onError } = this.#options;
    if (!onError) return warn(where, error);
    contain(`onError threw on an error of ${where}`, () => onError(error, where));
  }
}
