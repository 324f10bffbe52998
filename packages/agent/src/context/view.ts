import type { Compaction } from "../contract/compaction.ts";
import type { AgentMessage } from "../contract/types.ts";
import { ContextMemory } from "./memory.ts";

/**
 * The transcript as it is sent, kept up to date: each message is processed once, until a
 * compaction changes the list.
 */
export class View {
  readonly #memory: ContextMemory;
  #messages: readonly AgentMessage[] | undefined;
  #compaction: Compaction | undefined;
  #seen = 0;
  #list: AgentMessage[] = [];
  #tokens = 0;

  constructor(memory: ContextMemory = new ContextMemory()) {
    this.#memory = memory;
  }

  /** Estimated. */
  get tokens(): number {
    return this.#tokens;
  }

  /** The same as `applyCompaction`. Valid until the next call. */
  update(
    messages: readonly AgentMessage[],
    compaction: Compaction | undefined,
  ): readonly AgentMessage[] {
    if (messages !== this.#messages || compaction !== this.#compaction) {
      this.#messages = messages;
      this.#compaction = compaction;
      this.#list = [];
      this.#tokens = 0;
      this.#seen = 0;
      const { from = 0, to = 0, message } = compaction ?? {};
      if (message) {
        for (; this.#seen < from; this.#seen++) this.#add(messages[this.#seen]);
        this.#add(message);
        this.#seen = to;
      }
    }
    for (; this.#seen < messages.length; this.#seen++) this.#add(messages[this.#seen]);
    return this.#list;
  }

  #add(message: AgentMessage | undefined): void {
    if (!message) return;
    const sent = this.#memory.toSent(message, this.#compaction?.shortened);
    this.#list.push(sent);
    this.#tokens += this.#memory.countTokens(sent);
  }
}
