import { type AgentEndEvent, type AgentEvent, EventState } from "@gyre/agent";
import type { Payload } from "@gyre/protocol";
import type { SessionView } from "./session-agent.ts";

/** The current or last run. */
interface PublishedRun {
  /** The number of the event before its first: it identifies the run. */
  readonly after: number;
  readonly end?: { readonly seq: number; readonly payload: Payload };
}

/**
 * What the events that were sent say of an agent. The agent itself may be ahead of them; a
 * snapshot stands for the events up to a number, and has to say the same as they do.
 */
export class PublishedState {
  readonly #state = new EventState();
  #run: PublishedRun | undefined;

  constructor({ isRunning, state }: SessionView) {
    this.#state.isStreaming = isRunning;
    this.#state.error = state.error;
    this.#state.usage = state.usage;
    this.#state.setPending(state.pending);
  }

  get pending(): EventState["pending"] {
    return this.#state.pending;
  }

  /** Applies an event that is published after the number `last`. */
  apply(event: AgentEvent, last: number): void {
    // A snapshot takes the messages from the agent: they are not kept twice.
    if (event.type !== "message_end") this.#state.apply(event);
    if (event.type === "agent_start") this.#run = { after: last };
  }

  /** Applies the end of a run, published as `seq`. */
  endRun(event: AgentEndEvent, seq: number, payload: Payload): void {
    this.#state.apply(event);
    if (this.#run) this.#run = { after: this.#run.after, end: { seq, payload } };
  }

  /** The fields of a snapshot. */
  payload(): Payload {
    const { pending, usage, error, isStreaming: isRunning } = this.#state;
    return {
      isRunning,
      pending,
      usage,
      ...(error !== undefined && { error }),
      ...(this.#run && { run: this.#run }),
    };
  }
}
