import { MAX_MESSAGE_BYTES } from "../process/stdio-transport.ts";

/** Of the body of an answer that is an error. */
const MAX_ERROR_BYTES = 65_536;
/** Before the last byte of a blank line, in whatever way lines end. */
const BLANK_LINE_BYTES = 3;

/** `fetch`, as far as it is needed: what an application may put in its place. */
export type McpFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

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
