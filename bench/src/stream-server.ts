import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A process of its own that streams made-up responses: `/<wire>/<deltas>`, or `/line/<MB>`. */

const PIECE_BYTES = 16_384;
const MB = 1_000_000;

type Body = (size: number) => string;

const sse = (payload: object): string => `data: ${JSON.stringify(payload)}\n\n`;
const named = (payload: { type: string }): string => `event: ${payload.type}\n${sse(payload)}`;

const words = (count: number, event: (word: string) => string): string =>
  Array.from({ length: count }, (_, nth) => event(`word${nth % 100} `)).join("");

function anthropic(text: string): string {
  const message = { id: "msg_1", model: "bench", content: [], usage: { input_tokens: 10 } };
  return [
    named({ type: "message_start", message } as { type: string }),
    named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } } as {
      type: string;
    }),
    text,
    named({ type: "content_block_stop", index: 0 } as { type: string }),
    named({ type: "message_delta", delta: { stop_reason: "end_turn" } } as { type: string }),
    named({ type: "message_stop" }),
  ].join("");
}

function anthropicDelta(text: string): string {
  const delta = { type: "text_delta", text };
  return named({ type: "content_block_delta", index: 0, delta } as { type: string });
}

function chatChunk(delta: object, finish_reason: string | null = null): string {
  const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "bench" };
  return sse({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
}

function responsesDelta(delta: string): string {
  const type = "response.output_text.delta";
  return named({ type, item_id: "msg_1", output_index: 0, content_index: 0, delta } as {
    type: string;
  });
}

function responses(deltas: string): string {
  const item = { id: "msg_1", type: "message", role: "assistant", content: [] };
  const response = { id: "resp_1", model: "bench", status: "completed", usage: null };
  return [
    named({ type: "response.created", response } as { type: string }),
    named({ type: "response.output_item.added", output_index: 0, item } as { type: string }),
    deltas,
    named({ type: "response.completed", response } as { type: string }),
  ].join("");
}

const BODIES: Readonly<Record<string, Body>> = {
  "anthropic-messages": (count) => anthropic(words(count, anthropicDelta)),
  "openai-completions": (count) =>
    `${words(count, (content) => chatChunk({ content }))}${chatChunk({}, "stop")}data: [DONE]\n\n`,
  "openai-responses": (count) => responses(words(count, responsesDelta)),
  /** One event whose line is so many MB long. */
  line: (size) => anthropic(anthropicDelta("x".repeat(size * MB))),
};

const made = new Map<string, Buffer>();

createServer((request, response) => {
  const [, kind = "", size = ""] = request.url?.split("/") ?? [];
  const key = `${kind}/${size}`;
  const body = made.get(key) ?? Buffer.from(BODIES[kind]?.(Number(size)) ?? "");
  made.set(key, body);
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let from = 0; from < body.length; from += PIECE_BYTES) {
      response.write(body.subarray(from, from + PIECE_BYTES));
    }
    response.end();
  });
}).listen(0, "127.0.0.1", function (this: { address(): AddressInfo | string | null }) {
  process.send?.(this.address());
});
process.on("disconnect", () => process.exit());
