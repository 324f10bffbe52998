import {
  type Agent,
  type AgentEndEvent,
  type AgentEvent,
  type EventState,
  reduceAgentState,
} from "@gyre/agent";
import type { Payload } from "@gyre/protocol";

/** The run that goes on, or was the last. */
interface PublishedRun {
  /** The number of the event before its first: it names the run. */
  readonly after: number;
  readonly end?: { readonly seq: number; readonly payload: Payload };
}

/**
 * What the events that were sent say of an agent. The agent itself may be ahead of them; a
 * snapshot stands for the events up to a number, and has to say the same as they do.
 */
export class PublishedState {
  #state: EventState;
  #run: PublishedRun | undefined;

  constructor({ isRunning, state }: Agent) {
    const { pending, pendingToolCalls, usage, error } = state;
    this.#state = {
      isStreaming: isRunning,
      streamMessage: undefined,
      pendingToolCalls,
      pending,
      error,
      usage,
      compaction: undefined,
    };
  }

  get pending(): EventState["pending"] {
    return this.#state.pending;
  }

  /** An event is about to be sent after the one with the number `last`. */
  apply(event: AgentEvent, last: number): void {
    this.#state = reduceAgentState(this.#state, event);
    if (event.type === "agent_start") this.#run = { after: last };
  }

  /** The end of a run was sent, as this number. */
  endRun(event: AgentEndEvent, seq: number, payload: Payload): void {
    this.#state = reduceAgentState(this.#state, event);
    if (this.#run) this.#run = { after: this.#run.after, end: { seq, payload } };
  }

  /** For a snapshot. */
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
