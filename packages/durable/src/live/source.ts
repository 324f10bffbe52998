import type { AgentEvent } from "@gyre/agent";
import type { LiveWire, Packet } from "../contract/bus.ts";
import { LiveState } from "./state.ts";
import { joinWire, toLiveWire } from "./wire.ts";

/** The live events of an activation in this process. */
export class LiveSource {
  readonly session: string;
  readonly token: number;
  readonly state: LiveState = new LiveState();
  /** The entry of the log that what goes on follows. */
  base = 0;
  /** All of what goes on is to be sent: a process has begun to follow, or has lost something. */
  isWanted = false;
  readonly #onEvent: (event: AgentEvent, source: LiveSource) => boolean;
  #waiting: { readonly base: number; readonly events: LiveWire[] }[] = [];
  /** The number of the last event that was given out. */
  #last = 0;

  /** `onEvent` returns whether the event has to be sent to other processes. */
  constructor(
    session: string,
    token: number,
    onEvent: (event: AgentEvent, source: LiveSource) => boolean,
  ) {
    this.session = session;
    this.token = token;
    this.#onEvent = onEvent;
  }

  /**
   * Passes an event on. `base`: the last entry before it. The end of a message or a call is stored,
   * and so passed to no listener.
   */
  publish(event: AgentEvent, base: number): void {
    const wire = toLiveWire(event);
    if (!wire) return;
    // All of a message follows the entry before its beginning.
    if (wire.type !== "message_update") this.base = Math.max(this.base, base);
    const isKnownCall = "toolCallId" in wire && this.state.hasCall(wire.toolCallId);
    this.state.take(wire);
    if (!this.#onEvent(event, this)) this.#skip();
    else this.#add(isKnownCall ? withoutArgs(wire) : wire);
  }

  /** What is to be sent, with numbers. */
  takePackets(): Packet[] {
    const { session, token, base } = this;
    const waiting = this.#waiting;
    this.#waiting = [];
    if (this.isWanted) {
      this.isWanted = false;
      const last = ++this.#last;
      return [{ session, token, last, base, events: this.state.list(), isWhole: true }];
    }
    return waiting.map(({ base: from, events }) => {
      this.#last += events.length;
      return { session, token, last: this.#last, base: from, events };
    });
  }

  /** An event that is not sent leaves a gap in the numbers. */
  #skip(): void {
    this.#last += this.#waiting.length + 1;
    this.#waiting = [];
  }

  #add(event: LiveWire): void {
    const { base } = this;
    const last = this.#waiting.at(-1);
    if (last?.base === base) joinWire(last.events, event);
    else this.#waiting.push({ base, events: [event] });
  }
}

/** The arguments of a call are sent once. */
function withoutArgs(event: LiveWire): LiveWire {
  if (!("args" in event)) return event;
  const { args: _, ...rest } = event;
  return rest;
}
