import type { Clock } from "@gyre/ai";
import { MAX_MESSAGE_BYTES } from "@gyre/ai/programs";
import type { McpFetch } from "../contract/fetch.ts";

/** Of the body of an answer that is an error. */
const MAX_ERROR_BYTES = 65_536;
/** Before the last byte of a blank line, in whatever way lines end. */
const BLANK_LINE_BYTES = 3;

/** The same, but for answers with a message that is too long: they break off. */
export function limitedFetch(fetch: McpFetch): McpFetch {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (!response.body) return response;
    const isStream = response.headers.get("content-type")?.includes("text/event-stream") ?? false;
    const body = response.body.pipeThrough(response.ok ? counted(isStream) : beginning());
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
}

/** The same, with headers for this one address: what is asked elsewhere must not get them. */
export function fetchWithHeaders(
  fetch: McpFetch,
  address: string,
  headers: Readonly<Record<string, string>>,
): McpFetch {
  const { href } = new URL(address);
  return (url, init) => {
    if (new URL(url).href !== href) return fetch(url, init);
    const all = new Headers(headers);
    for (const [name, value] of new Headers(init?.headers)) all.set(name, value);
    return fetch(url, { ...init, headers: all });
  };
}

/** How long requests wait for the stream of the server's own messages. */
const STREAM_WAIT_MS = 2_000;

/**
 * The same, with requests that wait until the stream for the server's own messages is open: a question
 * that it has before that, in the older era, would be lost, and the call would wait for an answer.
 */
export function fetchAfterStream(fetch: McpFetch, clock: Clock): McpFetch {
  let opened: Promise<unknown> = Promise.resolve();
  return async (url, init) => {
    const method = init?.method ?? "GET";
    if (method === "POST") await opened;
    const answer = fetch(url, init);
    if (method === "GET") {
      let stop = (): void => {};
      const late = new Promise<void>((settle) => {
        stop = clock.after(STREAM_WAIT_MS, settle);
      });
      // The one that asked for it gets its error.
      const done = answer.then(stop, stop);
      opened = Promise.race([done, late]);
    }
    return answer;
  };
}

/** The beginning of an error's body: no more is needed, and it may have no end. */
function beginning(): TransformStream<Uint8Array, Uint8Array> {
  let left = MAX_ERROR_BYTES;
  return new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, left));
      left -= chunk.length;
      if (left <= 0) controller.terminate();
    },
  });
}

/** Errs when there is too much of it; of a stream of events, too much of one event. */
function counted(isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  /** A blank line may come in two pieces. */
  let before = Buffer.alloc(0);
  return new TransformStream({
    transform(chunk, controller) {
      const seen = isStream ? Buffer.concat([before, chunk]) : before;
      const event = lastBlankLine(seen);
      bytes = event < 0 ? bytes + chunk.length : seen.length - event;
      before = seen.subarray(-BLANK_LINE_BYTES);
      if (bytes > MAX_MESSAGE_BYTES) {
        controller.error(new Error(`A message has more than ${MAX_MESSAGE_BYTES} bytes.`));
      } else controller.enqueue(chunk);
    },
  });
}

function lastBlankLine(bytes: Buffer): number {
  return Math.max(bytes.lastIndexOf("\n\n"), bytes.lastIndexOf("\r\n\r\n"));
}
