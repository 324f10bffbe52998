import { systemClock } from "../common/clock.ts";
import type { AssistantMessageEvent, DeltaEvent } from "./events.ts";
import { EventStream } from "./event-stream.ts";
import { FLAT_CHUNK_CHARS, flatten } from "./growing-text.ts";
import type { AssistantMessage } from "../messages/messages.ts";

/** One response of a model while it streams. `result()` is the final message, also of a failed one. */
export class AssistantMessageEventStream extends EventStream<
  AssistantMessageEvent,
  AssistantMessage
> {
  constructor() {
    super(isTerminal, finalMessage, joinDeltas);
  }
}

/** The types of the events that change the partial message between `start` and the last event. */
export const STREAM_UPDATE_EVENTS: readonly Exclude<
  AssistantMessageEvent["type"],
  "start" | "done" | "error"
>[] = [
  "text_start",
  "text_delta",
  "text_end",
  "thinking_start",
  "thinking_delta",
  "thinking_end",
  "toolcall_start",
  "toolcall_delta",
  "toolcall_end",
  "service_tool",
  "image",
  "file",
];

/** Whether an event is the last one of its stream. */
export function isTerminal(
  event: AssistantMessageEvent,
): event is Extract<AssistantMessageEvent, { type: "done" | "error" }> {
  return event.type === "done" || event.type === "error";
}

/** Whether an event brings a piece of a block. */
export function isDelta(event: AssistantMessageEvent): event is DeltaEvent {
  return (
    event.type === "text_delta" ||
    event.type === "thinking_delta" ||
    event.type === "toolcall_delta"
  );
}

/** Whether two pieces belong to the same block. */
export function isSameBlock(one: DeltaEvent, other: DeltaEvent): boolean {
  return one.type === other.type && one.contentIndex === other.contentIndex;
}

/**
 * One delta of two that are neighbors in one block; nothing where they are not,
 * or where the first has grown to a good chunk (so that a reader who lags catches
 * up in steps, and no long rope is kept).
 */
export function joinDeltas(
  last: AssistantMessageEvent,
  next: AssistantMessageEvent,
): DeltaEvent | undefined {
  if (!isDelta(last) || !isDelta(next)) return undefined;
  if (!isSameBlock(last, next)) return undefined;
  if (last.delta.length >= FLAT_CHUNK_CHARS) return undefined;
  const delta = last.delta + next.delta;
  if (delta.length >= FLAT_CHUNK_CHARS) flatten(delta);
  return { ...next, delta };
}

function finalMessage(event: AssistantMessageEvent): AssistantMessage {
  if (event.type === "done") return event.message;
  if (event.type === "error") return event.error;
  throw new Error(`A "${event.type}" event does not end a response.`);
}

/** Reading events lets timers and I/O have their turn at least this often. */
const YIELD_INTERVAL_MS = 10;
const EVENTS_BETWEEN_CHECKS = 64;

/** Any async iterable of events (a generator, say) as a stream with a result. */
export function toAssistantStream(
  events: AsyncIterable<AssistantMessageEvent>,
): AssistantMessageEventStream {
  if (events instanceof AssistantMessageEventStream) return events;
  const stream = new AssistantMessageEventStream();
  void (async () => {
    let count = 0;
    let since = systemClock.now();
    try {
      for await (const event of events) {
        stream.push(event);
        if (stream.closed || stream.detached) break;
        // A generator that never waits would keep every timer from firing, an abort's too.
        if (++count % EVENTS_BETWEEN_CHECKS !== 0 || systemClock.now() - since < YIELD_INTERVAL_MS)
          continue;
        await systemClock.turn();
        since = systemClock.now();
      }
      stream.end();
    } catch (error) {
      stream.fail(error);
    }
  })();
  return stream;
}
