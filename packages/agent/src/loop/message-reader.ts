import {
  type AssistantMessage,
  type AssistantMessageEvent,
  type AssistantMessageEventStream,
  isDelta,
  isSameBlock,
  type StopReason,
} from "@gyre/ai";
import type { AgentEvent } from "../contract/types.ts";
import type { Run } from "../run/run.ts";
import type { Interruption } from "./interruption.ts";
import type { Watchdog } from "./watchdog.ts";

/** Reads the stream of one response, and emits the events of its message once it has content. */
export class MessageReader {
  /** The message so far; live, the provider may still write to it. */
  live: AssistantMessage | undefined;
  /** The message as the stream ended it. */
  final: AssistantMessage | undefined;
  /** Content was emitted, and cannot be taken back. */
  shown = false;
  /** Indices of the calls whose `toolcall_end` came. */
  readonly finished: number[] = [];
  readonly #run: Run;
  /** Events from before the first content. */
  #held: AssistantMessageEvent[] = [];
  /** The last event that the sink did not take at once. */
  #passing: Promise<void> | undefined;
  #stream: AssistantMessageEventStream | undefined;

  constructor(run: Run) {
    this.#run = run;
  }

  /**
   * Emits every event as it is pushed, in the call that pushed it: a delta costs no promise
   * unless the sink or the event loop wants one. Resolves at the end of the stream, or when the
   * request is cut off; rejects with the stream's error.
   */
  read(
    stream: AssistantMessageEventStream,
    watchdog: Watchdog,
    interruption: Interruption,
  ): Promise<void> {
    this.#stream = stream;
    return new Promise((resolve, reject) => {
      interruption.onRaise(resolve);
      const read = (): void => {
        try {
          watchdog.resume();
          while (!this.final && !interruption.reason) {
            const event = stream.take();
            if (event === undefined) {
              if (!stream.closed) return stream.whenReadable(read);
              return stream.failure ? reject(stream.failure.error) : resolve();
            }
            watchdog.observe(event);
            const passed = this.#pass(event);
            const yielded = this.#run.eventLoop.afterEvent();
            // A sink that answers with a promise does not yield to the event loop by that alone.
            const wait = passed && yielded ? passed.then(() => yielded) : (passed ?? yielded);
            if (wait) {
              watchdog.pause();
              this.#passing = wait;
              return void wait.then(read, reject);
            }
          }
          resolve();
        } catch (error) {
          reject(error);
        }
      };
      stream.whenReadable(read);
    });
  }

  /** Leaves the stream. Of a request that was cut off it first emits what had arrived. */
  finish(interruption: Interruption): void | Promise<void> {
    if (!this.#passing && !interruption.reason) return this.#stream?.detach();
    return (async () => {
      // An event that the sink is still taking comes before the rest.
      if (this.#passing) await this.#passing;
      if (this.#stream && interruption.reason) await this.#passRest(this.#stream);
      this.#stream?.detach();
    })();
  }

  /** Emits one event. Deltas come here by the hundred thousand. */
  #pass(event: AssistantMessageEvent): void | Promise<void> {
    if (event.type === "done") this.final = withStopReason(event.message, event.reason);
    else if (event.type === "error") this.final = withStopReason(event.error, event.reason);
    else if (event.type === "start") this.live ??= event.partial;
    else if (this.live) {
      this.live = event.partial;
      if (event.type === "toolcall_end") this.finished.push(event.contentIndex);
      if (this.shown) {
        return this.#run.emit({
          type: "message_update",
          message: event.partial,
          assistantMessageEvent: event,
        });
      }
      this.#held.push(event);
      if (hasContent(event)) return this.#show(event.partial);
    }
    return undefined;
  }

  #show(message: AssistantMessage): void | Promise<void> {
    const held = this.#held;
    this.shown = true;
    this.#held = [];
    this.#run.reportFirstContent();
    const updates = held.map((event): AgentEvent => ({
      type: "message_update",
      message,
      assistantMessageEvent: event,
    }));
    return this.#run.emitEach([{ type: "message_start", message }, ...updates]);
  }

  /** Emits what had arrived before the cut, in as few events as it takes. */
  async #passRest(stream: AssistantMessageEventStream): Promise<void> {
    const rest: AssistantMessageEvent[] = [];
    for (let event = stream.take(); event; event = stream.take()) {
      const last = rest.at(-1);
      if (last && isDelta(last) && isDelta(event) && isSameBlock(last, event)) {
        rest[rest.length - 1] = { ...event, delta: last.delta + event.delta };
      } else rest.push(event);
    }
    // A provider that ignores its signal goes on writing into its message: keep a copy.
    const newest = rest.findLast((event) => "partial" in event) ?? { partial: this.live };
    const kept = newest.partial && copyMessage(newest.partial);
    for (const event of rest) await this.#pass(event);
    if (kept) this.live = kept;
  }
}

/** A copy that the provider does not write to. */
export function copyMessage(message: AssistantMessage): AssistantMessage {
  const { content, usage } = message;
  return { ...message, usage: { ...usage }, content: content.map((block) => ({ ...block })) };
}

/** The event and its message both state the reason; the event's takes precedence. */
function withStopReason(message: AssistantMessage, stopReason: StopReason): AssistantMessage {
  return message.stopReason === stopReason ? message : { ...message, stopReason };
}

function hasContent(event: AssistantMessageEvent): boolean {
  switch (event.type) {
    case "text_start":
    case "thinking_start":
      return false;
    case "text_end":
      return event.content !== "";
    case "thinking_end": {
      const block = event.partial.content[event.contentIndex];
      return event.content !== "" || (block?.type === "thinking" && block.signature !== undefined);
    }
    default:
      return true;
  }
}
