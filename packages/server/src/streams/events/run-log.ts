import { type AgentEvent, type AgentMessage, isLlmMessage } from "@gyre/agent";
import type { FailureKind } from "@gyre/ai";
import { EventLog, type LoggedEvent } from "@gyre/protocol";
import { WireEventWriter } from "../../events/wire-event.ts";
import { findFailure, findThrownFailure, type OnError, toPageFailure } from "../common/failures.ts";
import { formatEvent } from "../common/sse.ts";

export interface RunLogOptions {
  /** The transcript before the run: a snapshot begins with it. */
  history?: readonly AgentMessage[];
  /** How many events are kept at most. Default 4,096. */
  maxEvents?: number;
  /** How many bytes of them. Default 4 MiB. */
  maxBytes?: number;
}

/**
 * Keeps the newest events of one run, for readers that come back: what one has missed is sent, and where that is
 * forgotten a snapshot of the run and what follows.
 */
export class RunLog {
  readonly #log: EventLog;
  readonly #writer = new WireEventWriter();
  readonly #messages: AgentMessage[];
  #agent: { abort(): void } | undefined;
  #onError: OnError | undefined;
  #state: "empty" | "running" | "ended" = "empty";
  #wakers: (() => void)[] = [];

  /** The last event, which is never forgotten. */
  #end: LoggedEvent | undefined;

  constructor({ history = [], maxEvents, maxBytes }: RunLogOptions = {}) {
    this.#log = new EventLog(maxEvents, maxBytes);
    this.#messages = [...history];
  }

  get hasEnded(): boolean {
    return this.#state === "ended";
  }

  /**
   * Reads a run to its end, whether or not a client follows. Throws if the log has a run already. `onError` gets why the
   * run failed, of which readers get the kind alone.
   */
  record(run: AsyncIterable<AgentEvent>, agent?: { abort(): void }, onError?: OnError): void {
    if (this.#state !== "empty")
      throw new Error("A log is of one run: make a new one for the next.");
    this.#state = "running";
    this.#agent = agent;
    this.#onError = onError;
    void this.#read(run);
  }

  /** Aborts the run, where the log was given its agent. */
  abort(): void {
    this.#agent?.abort();
  }

  /** Server-sent events after the one of this number, until the run ends. */
  async *read(after: number): AsyncGenerator<string, void> {
    for (let at = after; ;) {
      const events = this.#log.readAfter(at);
      if (!events) {
        at = this.#log.last;
        const state = this.#writer.createReaderState(this.#messages);
        // The end follows a snapshot, whose number is that before it.
        const end = this.#end;
        yield formatEvent({ messages: this.#messages, state }, end ? at - 1 : at, "snapshot");
        if (end) return void (yield formatEvent(end.payload, end.seq, end.type));
        continue;
      }
      for (const { seq, type, payload } of events) {
        at = seq;
        yield formatEvent(payload, seq, type);
      }
      if (events.length > 0) continue;
      if (this.hasEnded) return;
      await new Promise<void>((resolve) => this.#wakers.push(resolve));
    }
  }

  async #read(run: AsyncIterable<AgentEvent>): Promise<void> {
    try {
      for await (const event of run) {
        const shown = toPageEvent(event, this.#onError);
        const { type, payload } = this.#writer.write(shown);
        if (shown.type === "message_end") this.#messages.push(shown.message);
        const logged = this.#log.append(type, payload);
        if (type === "agent_end") this.#end = logged;
        this.#wake();
      }
    } catch (error) {
      this.#end = this.#log.append("error", { ...findThrownFailure(error, this.#onError) });
    }
    this.#state = "ended";
    this.#wake();
  }

  #wake(): void {
    const wakers = this.#wakers;
    this.#wakers = [];
    for (const wake of wakers) wake();
  }
}

/** The event with sentences of ours in place of what a service wrote of an error, which `onError` gets. */
export function toPageEvent(event: AgentEvent, onError?: OnError): AgentEvent {
  switch (event.type) {
    case "message_start":
    case "message_end":
      return { ...event, message: hideError(event.message) };
    case "retry":
    case "fallback":
      return { ...event, errorMessage: toPageFailure(event.kind as FailureKind).message };
    case "agent_end": {
      findFailure(event, onError);
      const { errorMessage, ...rest } = event;
      return errorMessage === undefined
        ? rest
        : { ...rest, errorMessage: toPageFailure("hook").message };
    }
    default:
      return event;
  }
}

function hideError(message: AgentMessage): AgentMessage {
  if (!isLlmMessage(message) || message.role !== "assistant") return message;
  const { errorMessage, failure, report: _, ...rest } = message;
  if (errorMessage === undefined && !failure) return rest;
  const kind = failure?.kind ?? "unknown";
  return { ...rest, failure: { kind }, errorMessage: toPageFailure(kind).message };
}
