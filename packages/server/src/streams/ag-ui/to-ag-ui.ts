import type { AgentEndEvent, AgentEvent, AgentMessage, PendingCall } from "@gyre/agent";
import type { ToolCall } from "@gyre/ai";
import {
  type DescribeFailure,
  findFailure,
  findThrownFailure,
  type OnError,
} from "../common/failures.ts";
import { type Part, PartReader } from "../common/part-reader.ts";
import { type SseOptions, toReadable, toSseResponse } from "../common/sse.ts";

/** An event of AG-UI 1.0. */
export type AgUiEvent = { type: string } & Readonly<Record<string, unknown>>;

export interface AgUiOptions {
  /** As the request names them. */
  threadId: string;
  runId: string;
  /** The transcript before the run. */
  history?: readonly AgentMessage[];
  /** Tools that the page runs itself: it is not asked about their calls. */
  clientTools?: readonly string[];
  /** The id of the question whether a call may run. Default: the id of the call. */
  nameInterrupt?: ((call: ToolCall) => string | Promise<string>) | undefined;
  describeFailure?: DescribeFailure;
  /** Gets each error of which the client reads the kind alone. */
  onError?: OnError;
}

export interface AgUiResponseOptions extends AgUiOptions, SseOptions {
  /** The run is aborted when its client leaves. */
  agent?: { abort(): void };
}

/**
 * A run as events of AG-UI. A call is sent when it is certain that it stays, as nothing can be taken back there. A call
 * that waits for a person is an interrupt. What AG-UI has no event for is `CUSTOM`, with a name that begins with `gyre.`.
 */
export function toAgUi(
  run: AsyncIterable<AgentEvent>,
  options: AgUiOptions & Pick<AgUiResponseOptions, "agent">,
): ReadableStream<AgUiEvent> {
  return toReadable(listEvents(run, options), () => options.agent?.abort());
}

/** The same as a response, for `HttpAgent` of `@ag-ui/client`. */
export function toAgUiResponse(
  run: AsyncIterable<AgentEvent>,
  options: AgUiResponseOptions,
): Response {
  return toSseResponse(formatEvents(listEvents(run, options)), options, () =>
    options.agent?.abort(),
  );
}

async function* formatEvents(events: AsyncIterable<AgUiEvent>): AsyncGenerator<string, void> {
  for await (const event of events) yield `data: ${JSON.stringify(event)}\n\n`;
}

async function* listEvents(
  run: AsyncIterable<AgentEvent>,
  options: AgUiOptions,
): AsyncGenerator<AgUiEvent, void> {
  const { threadId, runId, history = [] } = options;
  const reader = new PartReader({ history });
  const writer = new AgUiWriter(runId);
  yield { type: "RUN_STARTED", threadId, runId };
  try {
    for await (const event of run) {
      for (const part of reader.read(event)) {
        if (part.type === "end") yield await endRun(part.end, options);
        else yield* writer.write(part);
      }
    }
  } catch (error) {
    const { kind, message } = findThrownFailure(error, options.onError);
    yield { type: "RUN_ERROR", message, code: kind };
  }
}

class AgUiWriter {
  readonly #runId: string;
  #step = 0;

  constructor(runId: string) {
    this.#runId = runId;
  }

  write(part: Exclude<Part, { type: "end" }>): AgUiEvent[] {
    switch (part.type) {
      case "step_start":
        return [{ type: "STEP_STARTED", stepName: `answer ${++this.#step}` }];
      case "step_end":
        return [{ type: "STEP_FINISHED", stepName: `answer ${this.#step}` }];
      case "block_start": {
        const messageId = this.#nameMessage(part.id);
        if (part.kind === "text") {
          return [{ type: "TEXT_MESSAGE_START", messageId, role: "assistant" }];
        }
        return [
          { type: "REASONING_START", messageId },
          { type: "REASONING_MESSAGE_START", messageId, role: "reasoning" },
        ];
      }
      case "block_delta": {
        // An event without text is not valid.
        if (part.delta === "") return [];
        const messageId = this.#nameMessage(part.id);
        const prefix = part.kind === "text" ? "TEXT" : "REASONING";
        return [{ type: `${prefix}_MESSAGE_CONTENT`, messageId, delta: part.delta }];
      }
      case "block_end": {
        const messageId = this.#nameMessage(part.id);
        if (part.block.type === "text") return [{ type: "TEXT_MESSAGE_END", messageId }];
        return [
          { type: "REASONING_MESSAGE_END", messageId },
          { type: "REASONING_END", messageId },
        ];
      }
      case "call":
        return this.#writeCall(part.call);
      case "result": {
        const { id: toolCallId, outcome, result } = part;
        const texts = result.content.flatMap((block) =>
          block.type === "text" ? [block.text] : [],
        );
        const hasMore = texts.length < result.content.length;
        const content = hasMore ? JSON.stringify(result.content) : texts.join("\n");
        const messageId = `${toolCallId}.result`;
        return [
          { type: "TOOL_CALL_RESULT", messageId, toolCallId, content, role: "tool" },
          custom("outcome", { toolCallId, outcome, details: result.details }),
        ];
      }
      case "progress":
        return [custom("progress", { toolCallId: part.id, result: part.result })];
      case "service_tool": {
        const { raw: _, ...shown } = part.block;
        return [custom("service_tool", shown)];
      }
      case "file":
        return [custom("file", part.block)];
      case "user":
        return this.#step === 0 ? [] : [custom("steering", part.message)];
      case "status":
        return [
          custom("status", { ...part.event, errorMessage: undefined, compaction: undefined }),
        ];
      case "call_start":
      case "call_delta":
      case "dropped":
      case "result_message":
        return [];
      default:
        return part satisfies never;
    }
  }

  #writeCall({ id: toolCallId, name, arguments: args, ...call }: ToolCall): AgUiEvent[] {
    const parentMessageId = `${this.#runId}.${this.#step}.calls`;
    const text = call.argumentsError === undefined ? JSON.stringify(args) : call.rawArguments;
    return [
      { type: "TOOL_CALL_START", toolCallId, toolCallName: name, parentMessageId },
      ...(text ? [{ type: "TOOL_CALL_ARGS", toolCallId, delta: text }] : []),
      { type: "TOOL_CALL_END", toolCallId },
    ];
  }

  #nameMessage(id: string): string {
    return `${this.#runId}.${id}`;
  }
}

function custom(name: string, value: unknown): AgUiEvent {
  return { type: "CUSTOM", name: `gyre.${name}`, value };
}

async function endRun(end: AgentEndEvent, options: AgUiOptions): Promise<AgUiEvent> {
  const { threadId, runId, clientTools = [], describeFailure, onError, nameInterrupt } = options;
  const failure = findFailure(end, onError);
  if (failure) {
    const message = describeFailure ? describeFailure(failure, end) : failure.message;
    return { type: "RUN_ERROR", message, code: failure.kind };
  }
  const finished = { type: "RUN_FINISHED", threadId, runId };
  // The word is AG-UI's own.
  if (end.stop === "aborted") return { ...finished, outcome: { type: "cancelled" } };
  const asked = end.pending.filter(({ toolCall }) => !clientTools.includes(toolCall.name));
  if (asked.length === 0) return { ...finished, outcome: { type: "success" } };
  const interrupts = await Promise.all(asked.map((one) => writeInterrupt(one, nameInterrupt)));
  return { ...finished, outcome: { type: "interrupt", interrupts } };
}

async function writeInterrupt(
  { toolCall, reason }: PendingCall,
  nameInterrupt: AgUiOptions["nameInterrupt"],
): Promise<object> {
  const id = nameInterrupt ? await nameInterrupt(toolCall) : toolCall.id;
  return { id, reason: "tool_approval", message: reason, toolCallId: toolCall.id };
}
