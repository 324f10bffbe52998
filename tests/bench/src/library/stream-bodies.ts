/** Made-up responses of services, in the form in which they stream them. */

const MB = 1_000_000;

type Body = (size: number) => string;

const sse = (payload: object): string => `data: ${JSON.stringify(payload)}\n\n`;
const named = (payload: { type: string; [name: string]: unknown }): string =>
  `event: ${payload.type}\n${sse(payload)}`;

const makeWords = (count: number): string[] =>
  Array.from({ length: count }, (_, nth) => `word${nth % 100} `);

const words = (count: number, event: (word: string) => string): string =>
  makeWords(count).map(event).join("");

/** The characters of text in a response of so many deltas. */
export function streamedChars(deltas: number): number {
  return makeWords(deltas).join("").length;
}

function anthropic(text: string): string {
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "bench",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 1 },
  };
  return [
    named({ type: "message_start", message }),
    named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    text,
    named({ type: "content_block_stop", index: 0 }),
    named({
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 20 },
    }),
    named({ type: "message_stop" }),
  ].join("");
}

function anthropicDelta(text: string): string {
  const delta = { type: "text_delta", text };
  return named({ type: "content_block_delta", index: 0, delta });
}

function chatChunk(delta: object, finish_reason: string | null = null): string {
  const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "bench" };
  return sse({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
}

function responsesDelta(delta: string): string {
  const type = "response.output_text.delta";
  return named({ type, item_id: "msg_1", output_index: 0, content_index: 0, delta });
}

function responses(deltas: string): string {
  const item = { id: "msg_1", type: "message", role: "assistant", content: [] };
  const response = { id: "resp_1", model: "bench", status: "completed", usage: null };
  return [
    named({ type: "response.created", response }),
    named({ type: "response.output_item.added", output_index: 0, item }),
    deltas,
    named({ type: "response.completed", response }),
  ].join("");
}

const BODIES: Readonly<Record<string, Body>> = {
  "anthropic-messages": (count) => anthropic(words(count, anthropicDelta)),
  "openai-completions": (count) =>
    `${chatChunk({ role: "assistant", content: "" })}${words(count, (content) => chatChunk({ content }))}${chatChunk({}, "stop")}data: [DONE]\n\n`,
  "openai-responses": (count) => responses(words(count, responsesDelta)),
  /** One event whose line is so many MB long. */
  line: (size) => anthropic(anthropicDelta("x".repeat(size * MB))),
};

/** A response of a service, or, for an unknown `kind`, an empty one. */
export function makeBody(kind: string, size: number): string {
  return BODIES[kind]?.(size) ?? "";
}
