import type { AgentEndEvent, AgentEvent, AgentMessage, PendingCall } from "@gyre/agent";
import type { ToolCall } from "@gyre/ai";
import {
  type DescribeFailure,
  findFailure,
  findThrownFailure,
  type OnError,
  type PageFailure,
} from "../common/failures.ts";
import { PartReader } from "../common/part-reader.ts";
import { type SseOptions, toReadable, toSseResponse } from "../common/sse.ts";
import type { UIDataChunk, UIFinishReason, UIMessageChunk } from "./ui-chunks.ts";
import { RECORD_KEY } from "./ui-records.ts";
import { countSteps, UIWriter, type UIWriterOptions } from "./ui-writer.ts";

/** A run, as `run()` and `continueRun()` of an agent give it. */
export type RunEvents = AsyncIterable<AgentEvent>;

export interface UIStreamOptions extends UIWriterOptions {
  /** The id of the message on the page. Default: the page makes one up. */
  messageId?: string | undefined;
  /** The transcript before the run: ids of calls that are in it are not used again. */
  history?: readonly AgentMessage[] | undefined;
  /** Tools that the page runs itself: it is not asked about their calls. */
  clientTools?: readonly string[] | undefined;
  /** The id of the question whether a call may run. Default: the id of the call. */
  nameApproval?: ((call: ToolCall) => string | Promise<string>) | undefined;
  /** Text for people in place of the built-in sentence. */
  describeFailure?: DescribeFailure | undefined;
  /** Gets each error of which the page reads the kind alone: why the run failed, or what it threw. */
  onError?: OnError | undefined;
  /** Parts of the application's own, for each event. */
  data?: ((event: AgentEvent) => UIDataChunk | undefined) | undefined;
}

export interface UIResponseOptions extends UIStreamOptions, SseOptions {
  /** Its run is aborted when the reader leaves. */
  agent?: { abort(): void };
}

/**
 * A run as the AI SDK's UI message stream. Always ends with `finish` or `abort`; a failure is `error`
 * with our kind and a sentence of ours.
 */
export function toUIMessageStream(
  run: RunEvents,
  options: UIStreamOptions & Pick<UIResponseOptions, "agent"> = {},
): ReadableStream<UIMessageChunk> {
  return toReadable(listUIChunks(run, options), () => options.agent?.abort());
}

/** The same as a response, for `useChat`. */
export function toUIMessageStreamResponse(
  run: RunEvents,
  options: UIResponseOptions = {},
): Response {
  return respondWithChunks(listUIChunks(run, options), options, () => options.agent?.abort());
}

/** Chunks as a response. */
export function respondWithChunks(
  chunks: AsyncIterable<UIMessageChunk>,
  options: SseOptions,
  onClose: () => void,
): Response {
  const headers = { "x-vercel-ai-ui-message-stream": "v1", ...options.headers };
  return toSseResponse(formatChunks(chunks), { ...options, headers }, onClose);
}

async function* formatChunks(chunks: AsyncIterable<UIMessageChunk>): AsyncGenerator<string, void> {
  for await (const chunk of chunks) yield `data: ${JSON.stringify(chunk)}\n\n`;
  yield "data: [DONE]\n\n";
}

/** The chunks of a run. */
export async function* listUIChunks(
  run: RunEvents,
  options: UIStreamOptions = {},
): AsyncGenerator<UIMessageChunk, void> {
  const { messageId, history = [], continues, data } = options;
  const reader = new PartReader({ steps: countSteps(continues), history });
  const writer = new UIWriter(options);
  yield { type: "start", ...(messageId !== undefined && { messageId }) };
  try {
    for await (const event of run) {
      for (const part of reader.read(event)) {
        if (part.type === "end") yield* endRun(part.end, writer, options);
        else yield* writer.write(part);
      }
      const own = data?.(event);
      if (own) yield own;
    }
  } catch (error) {
    yield toErrorChunk(findThrownFailure(error, options.onError));
    yield { type: "finish", finishReason: "error" };
  }
}

async function* endRun(
  end: AgentEndEvent,
  writer: UIWriter,
  { nameApproval, clientTools = [], describeFailure, onError, sendRecords }: UIStreamOptions,
): AsyncGenerator<UIMessageChunk, void> {
  for (const question of end.pending) {
    const { id, name } = question.toolCall;
    // The page is not asked about what it runs itself, nor about what it does not show.
    if (clientTools.includes(name) || !writer.hasCall(id)) continue;
    yield await askApproval(question, nameApproval);
  }
  if (end.stop === "aborted") return void (yield { type: "abort", reason: "aborted" });
  const failure = findFailure(end, onError);
  if (failure) {
    yield toErrorChunk(
      describeFailure ? { ...failure, message: describeFailure(failure, end) } : failure,
    );
  }
  const { stop, limit, usage } = end;
  const record = { stop, ...(limit !== undefined && { limit }), usage };
  yield {
    type: "finish",
    finishReason: toFinishReason(end),
    ...(sendRecords !== false && { messageMetadata: { [RECORD_KEY]: record } }),
  };
}

async function askApproval(
  { toolCall, reason }: PendingCall,
  nameApproval: UIStreamOptions["nameApproval"],
): Promise<UIMessageChunk> {
  const { id: toolCallId } = toolCall;
  const approvalId = nameApproval ? await nameApproval(toolCall) : toolCallId;
  return { type: "tool-approval-request", approvalId, toolCallId, reason };
}

/** The kind comes first, so that a program can read it. */
function toErrorChunk({ kind, message }: PageFailure): UIMessageChunk {
  return { type: "error", errorText: `${kind}: ${message}` };
}

function toFinishReason({ stop, finalMessage }: AgentEndEvent): UIFinishReason {
  if (stop === "suspended") return "tool-calls";
  if (stop === "error" || stop === "sink") {
    return finalMessage?.failure?.kind === "refused" ? "content-filter" : "error";
  }
  if (stop !== "done") return "other";
  return finalMessage?.stopReason === "length" ? "length" : "stop";
}
