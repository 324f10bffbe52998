/** One event of a stream, as it is written. */
export interface Frame {
  text: string;
  /** It brings some of the content. */
  isDelta: boolean;
}

/** An answer of which nothing is left open. */
export interface FramedAnswer {
  model: string;
  /** The number of the request. */
  nth: number;
  parts: readonly (
    | { text: string; citations?: readonly object[] }
    | { thinking: string; signature?: string }
    | { call: string; arguments: Record<string, unknown>; id: string }
  )[];
  usage: { input: number; output: number; cacheRead: number; cacheWrite: number };
  stop: "end" | "calls" | "length";
  deltaChars: number;
}

const ANTHROPIC_STOPS = { end: "end_turn", calls: "tool_use", length: "max_tokens" } as const;
const CHAT_STOPS = { end: "stop", calls: "tool_calls", length: "length" } as const;

/** What the documentation of the Messages API calls its errors. */
const ANTHROPIC_ERRORS: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
};

/** The events of the Messages API, from `message_start` to `message_stop`. */
export function anthropicFrames(answer: FramedAnswer): Frame[] {
  const { deltaChars, model, nth, parts, stop, usage } = answer;
  const frames: Frame[] = [];
  const put = (event: { type: string; [field: string]: unknown }, isDelta = false): void => {
    frames.push({ text: `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`, isDelta });
  };
  const message = {
    id: `msg_${nth}`,
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: usage.input,
      cache_creation_input_tokens: usage.cacheWrite,
      cache_read_input_tokens: usage.cacheRead,
      output_tokens: 1,
    },
  };
  put({ type: "message_start", message });
  put({ type: "ping" });
  for (const [index, part] of parts.entries()) {
    const delta = (fields: object, counts = true): void =>
      put({ type: "content_block_delta", index, delta: fields }, counts);
    const begin = (content_block: object): void =>
      put({ type: "content_block_start", index, content_block });
    if ("text" in part) {
      begin({ type: "text", text: "" });
      for (const text of pieces(part.text, deltaChars)) delta({ type: "text_delta", text });
      for (const citation of part.citations ?? []) {
        delta({ type: "citations_delta", citation }, false);
      }
    } else if ("thinking" in part) {
      begin({ type: "thinking", thinking: "", signature: "" });
      for (const thinking of pieces(part.thinking, deltaChars)) {
        delta({ type: "thinking_delta", thinking });
      }
      delta({ type: "signature_delta", signature: part.signature ?? `c2lnbmVk${nth}` }, false);
    } else {
      begin({ type: "tool_use", id: part.id, name: part.call, input: {} });
      delta({ type: "input_json_delta", partial_json: "" }, false);
      for (const partial_json of pieces(JSON.stringify(part.arguments), deltaChars)) {
        delta({ type: "input_json_delta", partial_json });
      }
    }
    put({ type: "content_block_stop", index });
  }
  put({
    type: "message_delta",
    delta: { stop_reason: ANTHROPIC_STOPS[stop], stop_sequence: null },
    usage: { output_tokens: usage.output },
  });
  put({ type: "message_stop" });
  return frames;
}

/** The chunks of chat completions, with the one that has the usage, and the mark at the end. */
export function chatFrames(answer: FramedAnswer): Frame[] {
  const { deltaChars, model, nth, parts, stop, usage } = answer;
  const frames: Frame[] = [];
  const put = (choices: object[], isDelta = false, figures: object | null = null): void => {
    const head = { id: `chatcmpl-${nth}`, object: "chat.completion.chunk", created: 1, model };
    const text = `data: ${JSON.stringify({ ...head, choices, usage: figures })}\n\n`;
    frames.push({ text, isDelta });
  };
  const delta = (fields: object, isDelta: boolean): void =>
    put([{ index: 0, delta: fields, logprobs: null, finish_reason: null }], isDelta);
  delta({ role: "assistant", content: "" }, false);
  let calls = 0;
  for (const part of parts) {
    if ("text" in part) {
      for (const content of pieces(part.text, deltaChars)) delta({ content }, true);
    } else if ("thinking" in part) {
      for (const reasoning_content of pieces(part.thinking, deltaChars)) {
        delta({ reasoning_content }, true);
      }
    } else {
      const index = calls++;
      const named = { name: part.call, arguments: "" };
      delta({ tool_calls: [{ index, id: part.id, type: "function", function: named }] }, false);
      for (const text of pieces(JSON.stringify(part.arguments), deltaChars)) {
        delta({ tool_calls: [{ index, function: { arguments: text } }] }, true);
      }
    }
  }
  put([{ index: 0, delta: {}, logprobs: null, finish_reason: CHAT_STOPS[stop] }]);
  const prompt_tokens = usage.input + usage.cacheRead + usage.cacheWrite;
  put([], false, {
    prompt_tokens,
    completion_tokens: usage.output,
    total_tokens: prompt_tokens + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead },
  });
  frames.push({ text: "data: [DONE]\n\n", isDelta: false });
  return frames;
}

/** What stands in the body of a refused request, or in an `error` event. */
export function anthropicError(status: number, message = "So the script wants it."): object {
  const type = ANTHROPIC_ERRORS[status] ?? "api_error";
  return { type: "error", error: { type, message }, request_id: "req_1" };
}

export function chatError(status: number, message = "So the script wants it."): object {
  const code = status === 401 ? "invalid_api_key" : null;
  const type = status === 401 ? "invalid_request_error" : "server_error";
  return { error: { message, type, param: null, code } };
}

/** The text in pieces of that many characters, whole ones. */
function pieces(text: string, length: number): string[] {
  const letters = [...text];
  const cut: string[] = [];
  for (let at = 0; at < letters.length; at += length) {
    cut.push(letters.slice(at, at + length).join(""));
  }
  return cut;
}
