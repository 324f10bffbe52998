import { isThenable } from "@gyre/ai";
import { contain } from "../contract/contain.ts";
import type { AgentLoopConfig, AgentMessage, QueueName } from "../contract/types.ts";
import type { Hooks } from "./hooks.ts";

/** A message on its way into the transcript, and where it came from. */
export interface Injected {
  source: "prompt" | QueueName;
  message: AgentMessage;
}

/**
 * Messages that the run has taken and the transcript does not have yet: prompts, and what was
 * polled from a queue. What cannot be delivered returns to the front of its queue (R16).
 */
export class Inbox {
  readonly #config: AgentLoopConfig;
  readonly #hooks: Hooks;
  readonly #undelivered: AgentMessage[] = [];
  #messages: Injected[] = [];

  constructor(config: AgentLoopConfig, hooks: Hooks) {
    this.#config = config;
    this.#hooks = hooks;
  }

  get isEmpty(): boolean {
    return this.#messages.length === 0;
  }

  /** The message that is delivered next. It stays here until `remove`. */
  get first(): Injected | undefined {
    return this.#messages[0];
  }

  add(messages: readonly Injected[]): void {
    this.#messages.push(...messages);
  }

  /** Takes out the first message: it is in the transcript now. */
  remove(): void {
    this.#messages.shift();
  }

  /** Takes what a queue gives; whether there was anything. */
  poll(queue: QueueName): boolean | Promise<boolean> {
    const name = queue === "steering" ? "getSteeringMessages" : "getFollowUpMessages";
    const get = this.#config[name];
    if (!get) return false;
    const handBack = (messages: readonly AgentMessage[] | undefined): void => {
      if (messages && messages.length > 0) this.#config.requeue?.(queue, [...messages]);
    };
    const take = (messages: readonly AgentMessage[] = []): boolean => {
      for (const message of messages) this.#messages.push({ source: queue, message });
      return messages.length > 0;
    };
    const given = this.#hooks.call(name, get, handBack);
    return isThenable(given) ? given.then(take) : take(given);
  }

  /** Returns what was not delivered to its queue. The result is all that was returned so far. */
  returnToQueues(): AgentMessage[] {
    const undelivered = this.#messages.filter(({ source }) => source !== "prompt");
    this.#messages = [];
    for (const queue of ["steering", "followUp"] as const) {
      const messages = undelivered.filter((m) => m.source === queue).map((m) => m.message);
      if (messages.length > 0)
        contain("requeue threw", () => this.#config.requeue?.(queue, messages));
    }
    this.#undelivered.push(...undelivered.map(({ message }) => message));
    return this.#undelivered;
  }
}
