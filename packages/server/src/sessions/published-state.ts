import type { Agent, AgentEndEvent, AgentEvent, PendingCall } from "@gyre/agent";
import { addUsage, type Usage } from "@gyre/ai";
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
  pending: readonly PendingCall[];
  isRunning: boolean;
  usage: Usage;
  error: string | undefined;
  #run: PublishedRun | undefined;

  constructor({ isRunning, state }: Agent) {
    this.pending = state.pending;
    this.isRunning = isRunning;
    this.usage = state.usage;
    this.error = state.error;
  }

  /** An event is about to be sent after the one with the number `last`. */
  apply(event: AgentEvent, last: number): void {
    if (event.type === "turn_end") this.error = event.message.errorMessage || this.error;
    if (event.type !== "agent_start") return;
    this.isRunning = true;
    this.pending = [];
    this.error = undefined;
    this.#run = { after: last };
  }

  /** The end of a run was sent, as this number. */
  endRun({ pending, usage }: AgentEndEvent, seq: number, toPayload: Payload): void {
    this.isRunning = false;
    this.pending = pending;
    this.usage = addUsage(this.usage, usage);
    if (this.#run) this.#run = { after: this.#run.after, end: { seq, payload: toPayload } };
  }

  /** For a snapshot. */
  payload(): Payload {
    const { pending, usage, error, isRunning } = this;
    return {
      isRunning,
      pending,
      usage,
      ...(error !== undefined && { error }),
      ...(this.#run && { run: this.#run }),
    };
  }
}
