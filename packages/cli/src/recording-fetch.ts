import { redact } from "@gyre/ai";
import { logFile } from "./log-file.ts";

/** Headers whose value is a key, or may be. */
const SECRET_HEADERS = /authorization|api-key|token|secret|cookie/i;
const SHOWN_IN_PLACE = "[redacted]";

/**
 * The same `fetch`, and all that it sends and receives in a file: a JSON line for each
 * request, for each answer and for each piece of its body. Keys are left out, also where a
 * service repeats one. What the reader does not read of an answer is not in the file.
 */
export function recordingFetch(base: typeof fetch, path: string): typeof fetch {
  const write = logFile(path);
  let requests = 0;
  return async (input, init) => {
    const request = ++requests;
    const headers = new Headers(init?.headers);
    const secrets = secretsOf(headers);
    const put = (line: Record<string, unknown>): void => {
      const text = JSON.stringify({ time: new Date().toISOString(), request, ...line });
      write(`${redact(text, secrets)}\n`);
    };
    put({
      sent: String(input instanceof Request ? input.url : input),
      headers: shown(headers),
      body: init?.body ?? null,
    });
    let response: Response;
    try {
      response = await base(input, init);
    } catch (error) {
      put({ failed: error instanceof Error ? error.message : String(error) });
      throw error;
    }
    put({ status: response.status, headers: shown(response.headers) });
    return response.body ? withBody(response, response.body.pipeThrough(tap(put))) : response;
  };
}

/** Passes everything on as it comes, and tells of it by whole lines: a key is never cut in two. */
function tap(
  put: (line: Record<string, unknown>) => void,
): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  let rest = "";
  return new TransformStream({
    transform(piece, controller) {
      controller.enqueue(piece);
      const text = rest + decoder.decode(piece, { stream: true });
      const end = text.lastIndexOf("\n") + 1;
      rest = text.slice(end);
      if (end > 0) put({ received: text.slice(0, end) });
    },
    flush() {
      rest += decoder.decode();
      if (rest !== "") put({ received: rest });
    },
  });
}

function withBody(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { headers, status, statusText } = response;
  const copy = new Response(body, { headers, status, statusText });
  // A response that is made by hand has no address of its own.
  Object.defineProperty(copy, "url", { value: response.url });
  return copy;
}

function shown(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    [...headers].map(([name, value]) => [name, SECRET_HEADERS.test(name) ? SHOWN_IN_PLACE : value]),
  );
}

function secretsOf(headers: Headers): string[] {
  return [...headers]
    .filter(([name]) => SECRET_HEADERS.test(name))
    .map(([, value]) => value.replace(/^bearer\s+/i, ""));
}
