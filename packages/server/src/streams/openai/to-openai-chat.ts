import type { AgentEndEvent, AgentEvent } from "@gyre/agent";
import type { ToolCall, Usage } from "@gyre/ai";
import {
  type DescribeFailure,
  findFailure,
  findThrownFailure,
  type OnError,
  type PageFailure,
} from "../common/failures.ts";
import { PartReader } from "../common/part-reader.ts";
import { type SseOptions, toSseResponse } from "../common/sse.ts";

/** Between the texts of two answers of one run. */
const BETWEEN_ANSWERS = "\n\n";

export interface OpenAIChatOptions extends SseOptions {
  /** What the response says that it is of. Default "gyre". */
  model?: string;
  /** Tools that the client runs itself: their calls are sent to it. Those that run here are not. */
  clientTools?: readonly string[];
  /** Default true: chunks. False: one completion. */
  stream?: boolean;
  /** Whether the last chunk has the usage, as `stream_options` asks for it. */
  includeUsage?: boolean;
  /** The run is aborted when its client leaves. */
  agent?: { abort(): void };
  describeFailure?: DescribeFailure;
  /** Gets each error of which the client reads the kind alone. */
  onError?: OnError;
  /** Default: made up. */
  id?: string;
}

type Delta = {
  role?: "assistant";
  content?: string;
  reasoning_content?: string;
  tool_calls?: object[];
};
type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";
type News =
  | { delta: Delta }
  | { finish: FinishReason; usage: Usage }
  | { failure: { kind: string; message: string } };

/** The status of a completion that failed. */
const FAILED_STATUS = 502;

/** A run as a response of OpenAI's chat completions, in chunks or whole. */
export async function toOpenAIChat(
  run: AsyncIterable<AgentEvent>,
  options: OpenAIChatOptions = {},
): Promise<Response> {
  const news = readNews(run, options);
  if (options.stream ?? true) {
    return toSseResponse(writeChunks(news, options), options, () => options.agent?.abort());
  }
  return writeCompletion(news, options);
}

async function* readNews(
  run: AsyncIterable<AgentEvent>,
  options: OpenAIChatOptions,
): AsyncGenerator<News, void> {
  const reader = new PartReader();
  let isFirst = true;
  let isNewAnswer = false;
  yield { delta: { role: "assistant", content: "" } };
  try {
    for await (const event of run) {
      for (const part of reader.read(event)) {
        if (part.type === "step_start") isNewAnswer = true;
        if (part.type === "end") yield* endNews(part.end, options);
        if (part.type !== "block_delta" || part.delta === "") continue;
        if (part.kind === "thinking") {
          yield { delta: { reasoning_content: part.delta } };
          continue;
        }
        const before = isNewAnswer && !isFirst ? BETWEEN_ANSWERS : "";
        isNewAnswer = false;
        isFirst = false;
        yield { delta: { content: before + part.delta } };
      }
    }
  } catch (error) {
    yield { failure: findThrownFailure(error, options.onError) };
  }
}

function* endNews(end: AgentEndEvent, options: OpenAIChatOptions): Generator<News, void> {
  const { clientTools = [], describeFailure, onError } = options;
  const failure = findFailure(end, onError) ?? findStop(end, clientTools);
  if (failure && failure.kind !== "refused") {
    const message =
      describeFailure && end.stop === "error"
        ? describeFailure(failure as PageFailure, end)
        : failure.message;
    return void (yield { failure: { ...failure, message } });
  }
  if (end.stop === "suspended") {
    const calls = end.pending.map(({ toolCall }, index) => writeCall(toolCall, index));
    yield { delta: { tool_calls: calls } };
  }
  yield { finish: toFinishReason(end), usage: end.usage };
}

/** An end that a client of chat completions has no word for. */
function findStop(
  { stop, pending }: AgentEndEvent,
  clientTools: readonly string[],
): { kind: string; message: string } | undefined {
  if (stop === "aborted") return { kind: "aborted", message: "The run was stopped." };
  const asked = pending.find(({ toolCall }) => !clientTools.includes(toolCall.name));
  if (!asked) return undefined;
  const { name } = asked.toolCall;
  const message = `The call of "${name}" waits for a person, whom chat completions cannot ask.`;
  return { kind: "approval_required", message };
}

function toFinishReason({ stop, finalMessage }: AgentEndEvent): FinishReason {
  if (stop === "suspended") return "tool_calls";
  if (finalMessage?.failure?.kind === "refused") return "content_filter";
  return stop === "limit" || finalMessage?.stopReason === "length" ? "length" : "stop";
}

function writeCall(call: ToolCall, index: number): object {
  const { id, name, arguments: args } = call;
  return { index, id, type: "function", function: { name, arguments: JSON.stringify(args) } };
}

function writeUsage({ input = 0, output = 0, cacheRead = 0, cacheWrite = 0 }: Usage): object {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead },
  };
}

function writeError({ kind, message }: { kind: string; message: string }): object {
  return { error: { message, type: kind, code: kind, param: null } };
}

function writeHead({ id, model = "gyre" }: OpenAIChatOptions): { id: string; model: string } {
  return { id: id ?? `chatcmpl-${crypto.randomUUID()}`, model };
}

async function* writeChunks(
  news: AsyncIterable<News>,
  options: OpenAIChatOptions,
): AsyncGenerator<string, void> {
  const created = Math.floor((options.clock?.now() ?? Date.now()) / 1000);
  const head = { ...writeHead(options), object: "chat.completion.chunk", created };
  const format = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
  for await (const one of news) {
    if ("failure" in one) yield format(writeError(one.failure));
    else if ("delta" in one) {
      yield format({ ...head, choices: [{ index: 0, delta: one.delta, finish_reason: null }] });
    } else {
      yield format({ ...head, choices: [{ index: 0, delta: {}, finish_reason: one.finish }] });
      if (options.includeUsage)
        yield format({ ...head, choices: [], usage: writeUsage(one.usage) });
    }
  }
  yield "data: [DONE]\n\n";
}

async function writeCompletion(
  news: AsyncIterable<News>,
  options: OpenAIChatOptions,
): Promise<Response> {
  let [content, thinking] = ["", ""];
  let calls: object[] = [];
  let end: Extract<News, { finish: unknown }> | undefined;
  for await (const one of news) {
    if ("failure" in one) return Response.json(writeError(one.failure), { status: FAILED_STATUS });
    if ("finish" in one) end = one;
    else {
      content += one.delta.content ?? "";
      thinking += one.delta.reasoning_content ?? "";
      calls = one.delta.tool_calls ?? calls;
    }
  }
  const created = Math.floor((options.clock?.now() ?? Date.now()) / 1000);
  const message = {
    role: "assistant",
    content: content === "" && calls.length > 0 ? null : content,
    refusal: null,
    ...(thinking !== "" && { reasoning_content: thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return Response.json({
    ...writeHead(options),
    object: "chat.completion",
    created,
    choices: [{ index: 0, message, finish_reason: end?.finish ?? "stop", logprobs: null }],
    usage: writeUsage(end?.usage ?? {}),
  });
}
