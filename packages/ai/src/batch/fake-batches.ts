import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
import type { Fetch, FetchRequest } from "../providers/http/fetch.ts";

/** Some of the fields that the SDK of a service knows, each with its type. */
type Some<T> = T extends readonly (infer Item)[]
  ? Some<Item>[]
  : T extends object
    ? { [Name in keyof T]?: Some<T[Name]> }
    : T;

/** What becomes of a request at the fake service. */
export type Outcome =
  | { type: "text"; text: string }
  | { type: "call"; arguments: Record<string, unknown> }
  | { type: "error"; status: 400 | 429 | 500 }
  | { type: "canceled" }
  | { type: "expired" };

/** How a download goes: cut after so many bytes, with an error or as if it were the end. */
export interface Cut {
  bytes: number;
  isClean: boolean;
}

/** A fake of a service that takes batches; what it was asked is kept. */
export interface FakeBatches {
  fetch: Fetch;
  sent: { method: string; url: string; headers: Record<string, string>; body: string }[];
  /** The ids of the requests of the batch, in order. */
  ids: string[];
}

export interface FakePlan {
  outcomes: readonly Outcome[];
  /** How often it is asked until it has ended. */
  polls?: number;
  /** One for each download; those after the last are whole. */
  cuts?: readonly Cut[];
  /** How large the pieces of a download are, in bytes. */
  piece?: number;
  /** Whether the last line ends. */
  isTerminated?: boolean;
}

const ERRORS = {
  400: { type: "invalid_request_error", rpc: 3, message: "It is wrong" },
  429: { type: "rate_limit_error", rpc: 8, message: "Too many" },
  500: { type: "api_error", rpc: 13, message: "Internal server error" },
} as const;

/** One result of each service, as its documentation has it. */
const RESULTS: Readonly<Record<string, (id: string, outcome: Outcome) => object>> = {
  anthropic: (id, outcome) => ({ custom_id: id, result: anthropicResult(outcome) }),
  openai: openAiResult,
  google: googleResult,
};

export function fakeBatches(kind: "anthropic" | "openai" | "google", plan: FakePlan): FakeBatches {
  const { cuts = [], isTerminated = true, outcomes, piece = 64 * 1024 } = plan;
  const fake: FakeBatches = { fetch: answer, sent: [], ids: [] };
  let { polls = 0 } = plan;
  let downloads = 0;
  const list = (isWanted: (outcome: Outcome) => boolean): object[] =>
    fake.ids.flatMap((id, at) => {
      const outcome = outcomes[at % outcomes.length];
      return outcome && isWanted(outcome) ? [RESULTS[kind]?.(id, outcome) ?? {}] : [];
    });
  const download = (lines: object[]): Response => {
    const end = isTerminated ? "\n" : "";
    const text = lines.map((line) => JSON.stringify(line)).join("\n") + (lines.length ? end : "");
    return new Response(toBody(new TextEncoder().encode(text), piece, cuts[downloads++]));
  };
  const isDone = ({ type }: Outcome): boolean => type === "text" || type === "call";

  async function answer(url: string, init: FetchRequest): Promise<Response> {
    const { body = "", headers, method } = init;
    fake.sent.push({ method, url, headers, body });
    const path = new URL(url).pathname;
    if (path.endsWith("/cancel") || path.endsWith(":cancel")) {
      polls = 0;
      return Response.json({});
    }
    if (path.endsWith("/results")) return download(list(() => true));
    if (path.endsWith("/files/out/content")) return download(list(isDone));
    if (path.endsWith("/files/err/content")) return download(list((one) => !isDone(one)));
    if (path.endsWith("/files")) {
      fake.ids = [...body.matchAll(/"custom_id":"([^"]+)"/g)].map(([, id = ""]) => id);
      return Response.json({ id: "file-1" });
    }
    if (method === "POST" && kind !== "openai") {
      fake.ids = [...body.matchAll(/"(?:custom_id|key)":"([^"]+)"/g)].map(([, id = ""]) => id);
    }
    const isOver = method === "GET" && polls-- <= 0;
    return Response.json(STATUS[kind]({ isOver, ids: fake.ids, list, isDone }));
  }
  return fake;
}

interface Status {
  isOver: boolean;
  ids: readonly string[];
  list: (isWanted: (outcome: Outcome) => boolean) => object[];
  isDone: (outcome: Outcome) => boolean;
}

const STATUS: Readonly<Record<"anthropic" | "openai" | "google", (status: Status) => object>> = {
  anthropic: ({ ids, isOver, list }) => {
    const count = (type: Outcome["type"]): number => list((one) => one.type === type).length;
    const batch: Some<Anthropic.Messages.MessageBatch> = {
      id: "msgbatch_1",
      type: "message_batch",
      processing_status: isOver ? "ended" : "in_progress",
      request_counts: isOver
        ? {
            processing: 0,
            succeeded: count("text") + count("call"),
            errored: count("error"),
            canceled: count("canceled"),
            expired: count("expired"),
          }
        : { processing: ids.length, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
      expires_at: "2030-01-01T00:00:00Z",
    };
    return batch;
  },
  openai: ({ ids, isDone, isOver, list }) => {
    const completed = list(isDone).length;
    const hasErrors = completed < ids.length;
    const batch: Some<OpenAI.Batch> = {
      id: "batch_1",
      object: "batch",
      status: isOver ? "completed" : "in_progress",
      request_counts: { total: ids.length, completed, failed: ids.length - completed },
      expires_at: 1_893_456_000,
      ...(isOver && completed > 0 && { output_file_id: "out" }),
      ...(isOver && hasErrors && { error_file_id: "err" }),
    };
    return batch;
  },
  google: ({ ids, isOver, list }) => {
    const output = { inlinedResponses: { inlinedResponses: list(() => true) } };
    return {
      name: "batches/1",
      metadata: {
        name: "batches/1",
        state: isOver ? "BATCH_STATE_SUCCEEDED" : "BATCH_STATE_PENDING",
        batchStats: { requestCount: String(ids.length) },
        ...(isOver && { output }),
      },
      ...(isOver && { done: true, response: output }),
    };
  },
};

function anthropicResult(outcome: Outcome): Some<Anthropic.Messages.MessageBatchResult> {
  switch (outcome.type) {
    case "canceled":
    case "expired":
      return { type: outcome.type };
    case "error": {
      const { message, type } = ERRORS[outcome.status];
      return { type: "errored", error: { type: "error", error: { type, message } } };
    }
    default:
      return {
        type: "succeeded",
        message: {
          id: "msg_1",
          type: "message",
          role: "assistant",
          model: "claude-1",
          content: [
            { type: "thinking", thinking: "Hm.", signature: "sig" },
            outcome.type === "text"
              ? { type: "text", text: outcome.text }
              : { type: "tool_use", id: "toolu_1", name: "look", input: outcome.arguments },
          ],
          stop_reason: outcome.type === "text" ? "end_turn" : "tool_use",
          stop_sequence: null,
          usage: { input_tokens: 1_000_000, output_tokens: 1_000_000, service_tier: "batch" },
        },
      };
  }
}

function openAiResult(id: string, outcome: Outcome): object {
  const answered = (status_code: number, body: object): object => ({
    id: "r",
    custom_id: id,
    response: { status_code, request_id: "req_1", body },
    error: null,
  });
  switch (outcome.type) {
    case "canceled":
    case "expired": {
      const code = outcome.type === "expired" ? "batch_expired" : "batch_cancelled";
      return { id: "r", custom_id: id, response: null, error: { code, message: "Not handled" } };
    }
    case "error":
      return answered(outcome.status, { error: ERRORS[outcome.status] });
    default: {
      const response: Some<OpenAI.Responses.Response> = {
        id: "resp_1",
        object: "response",
        status: "completed",
        model: "gpt-1",
        output: [
          outcome.type === "text"
            ? {
                type: "message",
                id: "m1",
                role: "assistant",
                content: [{ type: "output_text", text: outcome.text, annotations: [] }],
              }
            : {
                type: "function_call",
                id: "f1",
                call_id: "call_1",
                name: "look",
                arguments: JSON.stringify(outcome.arguments),
              },
        ],
        usage: { input_tokens: 1_000_000, output_tokens: 1_000_000, total_tokens: 2_000_000 },
        service_tier: "default",
      };
      return answered(200, response);
    }
  }
}

function googleResult(key: string, outcome: Outcome): object {
  const metadata = { key };
  switch (outcome.type) {
    case "canceled":
      return { metadata, error: { code: 1, message: "Canceled" } };
    case "expired":
      return { metadata, error: { code: 4, message: "Deadline exceeded" } };
    case "error": {
      const { message, rpc: code } = ERRORS[outcome.status];
      return { metadata, error: { code, message } };
    }
    default:
      return {
        metadata,
        response: {
          candidates: [
            {
              content: {
                role: "model",
                parts: [
                  outcome.type === "text"
                    ? { text: outcome.text }
                    : { functionCall: { name: "look", args: outcome.arguments } },
                ],
              },
              finishReason: "STOP",
            },
          ],
          usageMetadata: { promptTokenCount: 1_000_000, candidatesTokenCount: 1_000_000 },
        },
      };
  }
}

function toBody(bytes: Uint8Array, piece: number, cut?: Cut): ReadableStream<Uint8Array> {
  const end = Math.min(bytes.length, cut?.bytes ?? bytes.length);
  let at = 0;
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at < end) {
        controller.enqueue(bytes.slice(at, Math.min(end, at + piece)));
        at += piece;
      } else if (cut && !cut.isClean) controller.error(new TypeError("terminated"));
      else controller.close();
    },
  });
}
