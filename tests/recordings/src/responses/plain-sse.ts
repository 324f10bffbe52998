import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { SseDecoder } from "@gyre/ai/stream";
import type { Case } from "./manifest.ts";

/** Recordings and vectors that are about the stream format alone, with no model behind them. */

interface SseEvent {
  event: string;
  data: string;
}

/** The vectors of the format's own test suite, where the folder has them. */
const VECTORS = "sse-conformance/wpt-eventsource.json";

interface Vector {
  id: string;
  input_base64: string;
  expected_events: SseEvent[];
}

export interface VectorResult {
  name: string;
  problems: string[];
}

/** Each vector whole and in single bytes. */
export function playVectors(folder: string): VectorResult[] {
  const path = join(folder, VECTORS);
  if (!existsSync(path)) return [];
  const { vectors } = JSON.parse(readFileSync(path, "utf8")) as { vectors: Vector[] };
  return vectors.map(({ id, input_base64, expected_events: expected }) => {
    const bytes = Buffer.from(input_base64, "base64");
    const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
    const problems = [[bytes], single].flatMap((pieces) => {
      const events = decode(pieces);
      return isDeepStrictEqual(events, expected)
        ? []
        : [`expected ${JSON.stringify(expected)}, got ${JSON.stringify(events)}`];
    });
    return { name: `sse-conformance/${id}`, problems };
  });
}

function decode(pieces: readonly Uint8Array[]): SseEvent[] {
  const events: SseEvent[] = [];
  const decoder = new SseDecoder((data, event = "message") => events.push({ event, data }));
  for (const piece of pieces) decoder.feed(piece);
  decoder.end();
  return events;
}

/** A recorded answer of an MCP server: JSON-RPC messages in events. */
export async function playMcp({ expected }: Case, url: string): Promise<string[]> {
  const response = await fetch(url, { method: "POST", body: "{}" });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const messages = decode([bytes]).map(({ data }) => JSON.parse(data) as Record<string, unknown>);
  const found = {
    jsonrpc_messages: messages.length,
    ids: messages.map(({ id = null }) => id),
    methods: messages.map(({ method = null }) => method),
    has_result: messages.map((message) => "result" in message),
  };
  return Object.entries(found).flatMap(([field, value]) => {
    const wanted = expected[field as keyof typeof found];
    if (wanted === undefined || isDeepStrictEqual(value, wanted)) return [];
    return [`${field}: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(value)}`];
  });
}
