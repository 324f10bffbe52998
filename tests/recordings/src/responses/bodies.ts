import type { Case } from "./manifest.ts";

/** Where one event of a body ends, and the next begins. */
export interface Boundary {
  /** The first byte after the event. */
  at: number;
  /** The event's payload, where it is text. */
  payload: string;
}

const LF = 0x0a;
const CR = 0x0d;

/** The ends of all events of a body: found again here, by other means than the client's. */
export function findBoundaries(one: Case, body: Uint8Array): Boundary[] {
  switch (one.framing) {
    case "aws-eventstream":
      return awsBoundaries(body);
    case "ndjson":
      return textBoundaries(
        body,
        (bytes, at) => (bytes[at] === LF ? 1 : 0),
        (text) => text.trim(),
      );
    case "json-array":
      return elementBoundaries(body);
    default:
      return textBoundaries(body, blankLine, sseData);
  }
}

/** How many bytes a blank line takes that begins at the end of a line at `at`; 0: none. */
function blankLine(bytes: Uint8Array, at: number): number {
  const first = lineEnd(bytes, at);
  const second = first > 0 ? lineEnd(bytes, at + first) : 0;
  return second > 0 ? first + second : 0;
}

function lineEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at] === LF) return 1;
  if (bytes[at] !== CR) return 0;
  return bytes[at + 1] === LF ? 2 : 1;
}

function sseData(event: string): string {
  return event
    .split(/\r\n|\r|\n/)
    .flatMap((line) => (line.startsWith("data:") ? [line.slice(5).replace(/^ /, "")] : []))
    .join("\n");
}

function textBoundaries(
  body: Uint8Array,
  endAt: (bytes: Uint8Array, at: number) => number,
  payloadOf: (event: string) => string,
): Boundary[] {
  const found: Boundary[] = [];
  let from = 0;
  for (let at = 0; at < body.length; at++) {
    const length = endAt(body, at);
    if (length === 0) continue;
    const payload = payloadOf(Buffer.from(body.subarray(from, at)).toString("utf8"));
    from = at + length;
    at = from - 1;
    if (payload !== "") found.push({ at: from, payload });
  }
  return found;
}

function awsBoundaries(body: Uint8Array): Boundary[] {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const found: Boundary[] = [];
  for (let at = 0; at + 16 <= body.length;) {
    const total = view.getUint32(at);
    const headers = view.getUint32(at + 4);
    const payload = body.subarray(at + 12 + headers, at + total - 4);
    const kind = eventType(Buffer.from(body.subarray(at + 12, at + 12 + headers)));
    at += total;
    found.push({ at, payload: `${kind} ${Buffer.from(payload).toString("utf8")}` });
  }
  return found;
}

/** The value of the header `:event-type`, which is a string with its length before it. */
function eventType(headers: Buffer): string {
  const name = ":event-type";
  const at = headers.indexOf(name) + name.length + 1;
  return headers.toString("utf8", at + 2, at + 2 + headers.readUInt16BE(at));
}

/** Elements of the outermost array. */
function elementBoundaries(body: Uint8Array): Boundary[] {
  const text = Buffer.from(body).toString("latin1");
  const found: Boundary[] = [];
  let depth = 0;
  let from = 0;
  for (const { 0: mark, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (mark === "{" || mark === "[") {
      depth++;
      if (depth === 2) from = index;
    } else if (mark === "}" || mark === "]") {
      depth--;
      if (depth === 1) {
        const bytes = body.subarray(from, index + 1);
        found.push({ at: index + 1, payload: Buffer.from(bytes).toString("utf8") });
      }
    }
  }
  return found;
}

/** Whether the response is whole with this event: what its service documents as the end. */
export function endsResponse({ api }: Case, payload: string): boolean {
  switch (api) {
    case "anthropic-messages":
      return /"type":\s*"message_stop"/.test(payload);
    case "openai-responses":
      return (
        /^\{"type":\s*"response\.(completed|incomplete|failed)"/.test(payload) ||
        typeIn(payload, /^response\.(completed|incomplete|failed)$/)
      );
    case "openai-chat":
    case "openai-completions-legacy":
      return payload.trim() === "[DONE]" || finishedChoice(payload);
    case "google-generative":
      return /"finishReason":|"blockReason":/.test(payload);
    case "ollama-native":
      return /"done":\s*true/.test(payload);
    default:
      return /^messageStop |"messageStop"|"message_stop"/.test(unpacked(payload));
  }
}

function typeIn(payload: string, type: RegExp): boolean {
  return type.test(String(parsed(payload)?.["type"]));
}

function finishedChoice(payload: string): boolean {
  const choices = parsed(payload)?.["choices"];
  if (!Array.isArray(choices)) return false;
  return choices.some(
    (choice: { index?: number; finish_reason?: unknown }) =>
      (choice.index ?? 0) === 0 &&
      typeof choice.finish_reason === "string" &&
      choice.finish_reason !== "",
  );
}

/** Bedrock's other call wraps the events of each model into base64. */
function unpacked(payload: string): string {
  const bytes = /"bytes":\s*"([^"]+)"/.exec(payload)?.[1];
  return bytes === undefined ? payload : Buffer.from(bytes, "base64").toString("utf8");
}

function parsed(payload: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(payload) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
