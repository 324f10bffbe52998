import { MAX_MESSAGE_BYTES } from "./stdio-transport.ts";

/** `fetch`, as far as it is needed: what an application may put in its place. */
export type McpFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** The same, but for answers with a message that is too long: they break off. */
export function limitedFetch(fetch: McpFetch): McpFetch {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (!response.ok || !response.body) return response;
    const isStream = response.headers.get("content-type")?.includes("text/event-stream") ?? false;
    const body = response.body.pipeThrough(counted(isStream));
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
}

/** Errs when there is too much of it; of a stream of events, too much of one event. */
function counted(isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const event = isStream ? lastBlankLine(chunk) : -1;
      bytes = event < 0 ? bytes + chunk.length : chunk.length - event;
      if (bytes > MAX_MESSAGE_BYTES) {
        controller.error(new Error(`A message has more than ${MAX_MESSAGE_BYTES} bytes.`));
      } else controller.enqueue(chunk);
    },
  });
}

function lastBlankLine(chunk: Uint8Array): number {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  return Math.max(bytes.lastIndexOf("\n\n"), bytes.lastIndexOf("\r\n\r\n"));
}
