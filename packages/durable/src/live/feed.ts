import type { AgentEvent } from "@gyre/agent";
import { CompactEventReader } from "@gyre/ai/stream";
import type { LiveWire, Packet } from "../contract/bus.ts";
import { LiveState } from "./state.ts";

/** How long an answer to a question may take before it is asked again. */
const ASK_AGAIN_MS = 1_000;

/** What a feed makes of packets. */
export interface FeedOutput {
  onEvent(event: AgentEvent): void;
  /** What goes on has to be looked at as a whole: see `state`. */
  onWhole(): void;
  /** Something was lost. */
  ask(): void;
}

/** Follows a session that another process works on. */
export class LiveFeed {
  state: LiveState = new LiveState();
  token = 0;
  base = 0;
  #last = 0;
  #reader: CompactEventReader | undefined;
  /** Nothing was lost since the beginning, or since the last packet that was whole. */
  #isInStep = false;
  /** A process that begins to follow is sent what goes on without a question. */
  #isNew = true;
  #nextAskAt = performance.now() + ASK_AGAIN_MS;
  readonly #output: FeedOutput;

  constructor(output: FeedOutput) {
    this.#output = output;
  }

  receive(packet: Packet): void {
    const { token, last, base, events, isWhole } = packet;
    if (token < this.token || (token === this.token && last <= this.#last)) return;
    const before = last - events.length;
    if (isWhole || (token > this.token && before === 0)) this.#begin(token);
    else if (token > this.token) this.#lose(token);
    else if (before !== this.#last) this.#isInStep = false;
    this.#last = last;
    const start = this.#isInStep ? 0 : events.findIndex(({ type }) => type === "message_start");
    if (start < 0) return this.#ask();
    // A message that begins needs nothing of what was lost.
    if (!this.#isInStep) this.#begin(token);
    this.base = base;
    try {
      for (const event of events.slice(start)) {
        const made = this.#read(event);
        if (made && !isWhole) this.#output.onEvent(made);
      }
    } catch {
      // It follows nothing that came before: something was lost.
      return this.#lose(token);
    }
    if (isWhole) this.#output.onWhole();
  }

  #begin(token: number): void {
    this.#lose(token);
    this.#isInStep = true;
    if (this.#isNew) this.#nextAskAt = 0;
    this.#isNew = false;
  }

  #lose(token: number): void {
    this.token = token;
    this.state = new LiveState();
    this.#reader = undefined;
    this.#isInStep = false;
  }

  #ask(): void {
    const now = performance.now();
    if (now < this.#nextAskAt) return;
    this.#nextAskAt = now + ASK_AGAIN_MS;
    this.#output.ask();
  }

  #read(event: LiveWire): AgentEvent | undefined {
    const { state } = this;
    state.take(event);
    switch (event.type) {
      case "message_start":
        this.#reader = new CompactEventReader(event.message);
        return { type: event.type, message: this.#reader.partial };
      case "message_update": {
        if (!this.#reader) throw new Error("An update comes before the start of its message.");
        const assistantMessageEvent = this.#reader.read(event.event);
        return { type: event.type, message: this.#reader.partial, assistantMessageEvent };
      }
      case "tool_execution_start":
      case "tool_execution_update":
        return { ...event, args: state.readArgs(event) };
      case "message_end":
        this.#reader = undefined;
        return undefined;
      case "tool_execution_end":
        return undefined;
      default:
        return event;
    }
  }
}
