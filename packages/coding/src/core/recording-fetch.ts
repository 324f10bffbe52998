import { redact, redactHeaders } from "@gyre/ai";
import type { Fetch, FetchedResponse } from "@gyre/ai/providers";
import { logFile } from "./log-file.ts";

/**
 * The same `fetch`, and all that it sends and receives in a file or on stderr: a JSON line for each
 * request, for each answer and for each piece of its body. Keys are left out, also where a
 * service repeats one. What the reader does not read of an answer is not in the file. Once the
 * file cannot be written to, that is a warning, and all goes on without it.
 */
export function recordingFetch(base: Fetch, path: string): Fetch {
  const write = untilItFails(logFile(path), path);
  let requests = 0;
  return async (url, init) => {
    const request = ++requests;
    const secrets = findSecrets(init.headers);
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

function untilItFails(write: (text: string) => void, path: string): (text: string) => void {
  let hasFailed = false;
  return (text) => {
    if (hasFailed) return;
    try {
      write(text);
    } catch (error) {
      hasFailed = true;
      const why = error instanceof Error ? error.message : String(error);
      process.emitWarning(`${path} is not written to any more: ${why}`);
    }
  };
}

/** Passes everything on as it comes, and records whole lines: a key is never cut in two. */
function tap(
  put: (line: Record<string, unknown>) => void,
): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  /** Of a line whose end has not come, in pieces that are joined when it has. */
  const rest: string[] = [];
  return new TransformStream({
    transform(piece, controller) {
      controller.enqueue(piece);
      const text = decoder.decode(piece, { stream: true });
      const end = text.lastIndexOf("\n") + 1;
      if (end > 0) put({ received: [...rest.splice(0), text.slice(0, end)].join("") });
      rest.push(text.slice(end));
    },
    flush() {
      const received = [...rest, decoder.decode()].join("");
      if (received !== "") put({ received });
    },
  });
}

function findSecrets(headers: Readonly<Record<string, string>>): string[] {
  const shown = redactHeaders(headers);
  return Object.entries(headers)
    .filter(([name, value]) => shown[name] !== value)
    .map(([, value]) => value.replace(/^bearer\s+/i, ""));
}
