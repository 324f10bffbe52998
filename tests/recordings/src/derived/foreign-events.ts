import type { Case } from "../responses/manifest.ts";

const WORDS = "The service is overloaded. Please try again later.";

/** What each service sends in the middle of a stream when it has too much to do. */
const ERRORS: Readonly<Record<string, object>> = {
  "anthropic-messages": { type: "error", error: { type: "overloaded_error", message: WORDS } },
  "openai-chat": { error: { message: WORDS, type: "overloaded", code: 503 } },
  "openai-completions-legacy": { error: { message: WORDS, type: "overloaded", code: 503 } },
  "openai-responses": { type: "error", code: "server_is_overloaded", message: WORDS },
  "google-generative": { error: { code: 503, message: WORDS, status: "UNAVAILABLE" } },
  "ollama-native": { error: WORDS },
  "bedrock-converse": { message: WORDS },
  "bedrock-invoke": { message: WORDS },
};

/** Events that no service knows (yet). */
const UNKNOWN: Readonly<Record<string, object>> = {
  "anthropic-messages": { type: "moon_phase", value: 1 },
  "openai-chat": { id: "moon", object: "moon.phase", value: 1 },
  "openai-completions-legacy": { id: "moon", object: "moon.phase", value: 1 },
  "openai-responses": { type: "response.moon_phase.delta", output_index: 99, delta: "full" },
  "google-generative": { moonPhase: { value: 1 } },
  "ollama-native": { moon_phase: 1 },
  "bedrock-converse": { value: 1 },
  "bedrock-invoke": { bytes: Buffer.from('{"type":"moon_phase"}').toString("base64") },
};

export function errorEvent(one: Case): Uint8Array {
  return framed(one, ERRORS[one.api] ?? {}, "error", {
    ":message-type": "exception",
    ":exception-type": "serviceUnavailableException",
  });
}

export function unknownEvent(one: Case): Uint8Array {
  return framed(one, UNKNOWN[one.api] ?? {}, "moon_phase", {
    ":message-type": "event",
    ":event-type": one.api === "bedrock-invoke" ? "chunk" : "moonPhase",
  });
}

function framed(
  one: Case,
  payload: object,
  name: string,
  awsHeaders: Record<string, string>,
): Uint8Array {
  const json = JSON.stringify(payload);
  switch (one.framing) {
    case "aws-eventstream":
      return awsMessage(awsHeaders, json);
    case "ndjson":
      return Buffer.from(`${json}\n`);
    case "json-array":
      return Buffer.from(`,${json}`);
    default:
      return Buffer.from(
        one.api === "anthropic-messages"
          ? `event: ${name}\ndata: ${json}\n\n`
          : `data: ${json}\n\n`,
      );
  }
}

const PRELUDE_BYTES = 12;
const CRC_BYTES = 4;
const STRING_TYPE = 7;

/** One message of Amazon's event stream. */
function awsMessage(headers: Record<string, string>, payload: string): Uint8Array {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(Buffer.byteLength(value));
      return Buffer.concat([
        Buffer.from([Buffer.byteLength(name)]),
        Buffer.from(name),
        Buffer.from([STRING_TYPE]),
        length,
        Buffer.from(value),
      ]);
    }),
  );
  const body = Buffer.from(payload);
  const message = Buffer.alloc(PRELUDE_BYTES + head.length + body.length + CRC_BYTES);
  message.writeUInt32BE(message.length, 0);
  message.writeUInt32BE(head.length, 4);
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8);
  head.copy(message, PRELUDE_BYTES);
  body.copy(message, PRELUDE_BYTES + head.length);
  message.writeUInt32BE(crc32(message.subarray(0, -CRC_BYTES)), message.length - CRC_BYTES);
  return message;
}

/** Bit by bit: slow, plain, and not the client's. */
function crc32(bytes: Uint8Array): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
