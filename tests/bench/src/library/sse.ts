import { SseDecoder } from "@gyre/ai/stream";
import { createParser } from "eventsource-parser";
import { type Case, createRatio, formatMs, type Line } from "../measure/lines.ts";
import { interleaved } from "../measure/measure.ts";

const ROUNDS = 9;
const READ_BYTES = 16 * 1024;
const MEGABYTE = 1024 * 1024;
/** What the decision to keep our decoder rests on: it is no slower than this on any row. */
const LIMIT = 1.25;

const encoder = new TextEncoder();

type Feed = (bytes: Uint8Array) => void;

/** Our decoder, as clients use it. */
function openOurs(onData: (data: string) => void): Feed {
  const decoder = new SseDecoder(onData);
  return (bytes) => decoder.feed(bytes);
}

/** The library, as its users use it: it reads text. */
function openLibrary(onData: (data: string) => void): Feed {
  const decoder = new TextDecoder();
  const parser = createParser({ onEvent: ({ data }) => onData(data) });
  return (bytes) => parser.feed(decoder.decode(bytes, { stream: true }));
}

function countEvents(open: typeof openOurs, pieces: readonly Uint8Array[]): number {
  let events = 0;
  const feed = open(() => events++);
  for (const piece of pieces) feed(piece);
  return events;
}

function cut(text: string, size: number): Uint8Array[] {
  const bytes = encoder.encode(text);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}

const chat = `data: {"id":"chatcmpl-9","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}\n\n`;
const named = (text: string): string =>
  `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${text}"}}\n\n`;
const line = `data: ${"x".repeat(10 * MEGABYTE)}\n\n`;

const BODIES: Readonly<Record<string, () => Uint8Array[]>> = {
  "20,000 chat deltas": () => cut(chat.repeat(20_000), READ_BYTES),
  "20,000 chat deltas, one a read": () => cut(chat.repeat(20_000), chat.length),
  "20,000 named events": () => cut(named(" word").repeat(20_000), READ_BYTES),
  "20,000 named events, CRLF": () =>
    cut(named(" word").replaceAll("\n", "\r\n").repeat(20_000), READ_BYTES),
  "20,000 deltas in Chinese, reads of 1,000 bytes": () =>
    cut(named("你好世界").repeat(20_000), 1000),
  "2,000 named events, a byte a read": () => cut(named(" word").repeat(2_000), 1),
  "one line of 10 MB, reads of 64 bytes": () => cut(line, 64),
  "one line of 10 MB": () => cut(line, READ_BYTES),
  "150,000 data lines of one character": () => cut(`${"data:x\n".repeat(150_000)}\n`, READ_BYTES),
  "20,000 unknown fields": () => cut("a\n".repeat(20_000), READ_BYTES),
  "1 MB of CR": () => cut("\r".repeat(MEGABYTE), READ_BYTES),
};

/** Our SSE decoder beside the library's; see docs/decisions/own-sse-decoder.md. */
export const sseCases: readonly Case[] = [
  {
    name: "sse",
    async run() {
      const lines: Line[] = [];
      for (const [what, makeBody] of Object.entries(BODIES)) {
        const pieces = makeBody();
        const wanted = countEvents(openLibrary, pieces);
        const run = (open: typeof openOurs) => async (): Promise<void> => {
          const events = countEvents(open, pieces);
          if (events !== wanted) throw new Error(`${what}: ${events} events, not ${wanted}.`);
        };
        const times = await interleaved(ROUNDS, { floor: run(openLibrary), gyre: run(openOurs) });
        lines.push(createRatio(what, times, formatMs(2), LIMIT));
      }
      return lines;
    },
  },
];
