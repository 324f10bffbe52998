import { type Clock, systemClock } from "@gyre/ai";

/** A comment is sent after so much silence: proxies close connections that carry nothing. */
export const DEFAULT_HEARTBEAT_MS = 15_000;
const HEARTBEAT = ": keep-alive\n\n";

export interface SseOptions {
  /** Default 15,000; 0 sends no comments. */
  heartbeatMs?: number;
  /** Added to those of the protocol, or in their place. */
  headers?: Readonly<Record<string, string>>;
  clock?: Clock;
}

/** Headers of every stream: nothing on the way may keep it back or store it. */
const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  connection: "keep-alive",
  "x-accel-buffering": "no",
};

/** An event of a value, on one line. */
export function formatEvent(data: unknown, id?: number, type?: string): string {
  const place = id === undefined ? "" : `id: ${id}\n`;
  return `${place}${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(data)}\n\n`;
}

/**
 * A response with server-sent events, each text of `events` one of them or several. `onClose` is called where the
 * reader leaves before the end.
 */
export function toSseResponse(
  events: AsyncIterable<string>,
  { heartbeatMs = DEFAULT_HEARTBEAT_MS, headers, clock = systemClock }: SseOptions,
  onClose: () => void,
): Response {
  const encoder = new TextEncoder();
  const iterator = events[Symbol.asyncIterator]();
  let stopHeartbeat = (): void => {};
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const beat = (): void => {
        controller.enqueue(encoder.encode(HEARTBEAT));
        stopHeartbeat = clock.after(heartbeatMs, beat);
      };
      if (heartbeatMs > 0) stopHeartbeat = clock.after(heartbeatMs, beat);
      try {
        const { done, value } = await iterator.next();
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      } finally {
        stopHeartbeat();
      }
    },
    async cancel() {
      stopHeartbeat();
      onClose();
      await iterator.return?.();
    },
  });
  return new Response(body, { headers: { ...HEADERS, ...headers } });
}

/** A stream of the values, pulled one by one. `onClose`: the reader leaves before the end. */
export function toReadable<T>(
  values: AsyncIterable<T>,
  onClose: () => void = () => {},
): ReadableStream<T> {
  const iterator = values[Symbol.asyncIterator]();
  return new ReadableStream<T>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      onClose();
      await iterator.return?.();
    },
  });
}
