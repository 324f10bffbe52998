import { redact, redactHeaders } from "@gyre/ai";
import type { Fetch, FetchedResponse } from "@gyre/ai/providers";
import { logFile } from "./log-file.ts";

/**
 * The same `fetch`, and all that it sends and receives in a file: a JSON line for each
 * request, for each answer and for each piece of its body. Keys are left out, also where a
 * service repeats one. What the reader does not read of an answer is not in the file.
 */
export function recordingFetch(base: Fetch, path: string): Fetch {
  const write = logFile(path);
  let requests = 0;
  return async (url, init) => {
    const request = ++requests;
    const secrets = secretsOf(init.headers);
    const put = (line: Record<string, unknown>): void => {
      const text = JSON.stringify({ time: new Date().toISOString(), request, ...line });
      write(`${redact(text, secrets)}\n`);
    };
    put({ sent: url, headers: redactHeaders(init.headers), body: init.body });
    let response: FetchedResponse;
    try {
      response = await base(url, init);
    } catch (error) {
      put({ failed: error instanceof Error ? error.message : String(error) });
      throw error;
    }
    const { body, headers, ok, status } = response;
    put({ status, headers: redactHeaders(headers) });
    return { ok, status, headers, body: body?.pipeThrough(tap(put)) ?? null };
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

function secretsOf(headers: Readonly<Record<string, string>>): string[] {
  const shown = redactHeaders(headers);
  return Object.entries(headers)
    .filter(([name, value]) => shown[name] !== value)
    .map(([, value]) => value.replace(/^bearer\s+/i, ""));
}
