import { addUsage, type AssistantMessage, type Usage } from "@gyre/ai";
import type { AgentEndEvent, AgentMessage, AgentStop, PendingCall } from "../contract/types.ts";

/** What a run has come to so far. Its last event reports it, also after the sink has failed. */
export class RunRecord {
  /** Messages that the sink has taken, in order. */
  readonly #messages: AgentMessage[] = [];
  readonly #pending: PendingCall[] = [];
  #turns = 0;
  #usage: Usage = {};
  #finalMessage: AssistantMessage | undefined;

  get turns(): number {
    return this.#turns;
  }

  get usage(): Usage {
    return this.#usage;
  }

  /** Whether a call waits for a person. */
  get isSuspended(): boolean {
    return this.#pending.length > 0;
  }

  beginTurn(): void {
    this.#turns++;
  }

  add(message: AgentMessage): void {
    this.#messages.push(message);
  }

  addAnswer(message: AssistantMessage): void {
    this.#messages.push(message);
    this.#finalMessage = message;
    this.#usage = addUsage(this.#usage, message.usage);
  }

  addUsage(usage: Usage): void {
    this.#usage = addUsage(this.#usage, usage);
  }

  addPending(call: PendingCall): void {
    this.#pending.push(call);
  }

  /** The last event of the run. */
  toEnd(stop: AgentStop, undelivered: AgentMessage[]): AgentEndEvent {
    return {
      type: "agent_end",
      messages: this.#messages,
      stop,
      turns: this.#turns,
      usage: this.#usage,
      ...(this.#finalMessage && { finalMessage: this.#finalMessage }),
      undelivered,
      pending: this.#pending,
    };
  }
}
