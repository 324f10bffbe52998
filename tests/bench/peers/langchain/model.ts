import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
} from "@langchain/core/language_models/chat_models";
import type { ChatModelStreamEvent } from "@langchain/core/language_models/event";
import { AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import { getConfig } from "@langchain/langgraph";
import type { Answer, Part, Work } from "../peer.ts";
import { Blocks } from "./blocks.ts";

const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };

/** What the model says in one run; goes with the run's settings, as `configurable.script`. */
export class Script {
  readonly #answer: Work["answer"];
  #asked = 0;

  constructor(answer: Work["answer"]) {
    this.#answer = answer;
  }

  next(): Answer {
    return this.#answer(this.#asked++);
  }
}

/** The script of the run that asks, since one model serves all runs of an agent. */
function nextAnswer(): Answer {
  const script: unknown = getConfig().configurable?.["script"];
  if (script instanceof Script) return script.next();
  throw new Error("There is no script in the settings of this run.");
}

/**
 * The scripted model. The library's fakes answer at once or from chunks that are ready
 * before, so this is a chat model with the two methods that its own Anthropic and OpenAI
 * models have: chunks for `stream`, content blocks for `streamEvents`. Like those it just
 * ends when the signal is aborted, and leaves it to the library to throw.
 */
export class ScriptedModel extends BaseChatModel {
  constructor() {
    super({});
  }

  override _llmType(): string {
    return "scripted";
  }

  /** Tools would only go to a service, so there is nothing to bind. */
  override bindTools(): this {
    return this;
  }

  override _generate(): Promise<ChatResult> {
    throw new Error("The scripted model only streams.");
  }

  override _streamResponseChunks(
    _messages: BaseMessage[],
    { signal }: BaseChatModelCallOptions,
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    return chunks(nextAnswer(), signal, manager);
  }

  override _streamChatModelEvents(
    _messages: BaseMessage[],
    { signal }: BaseChatModelCallOptions,
  ): AsyncGenerator<ChatModelStreamEvent> {
    return events(nextAnswer(), signal);
  }
}

async function* chunks(
  answer: Answer,
  signal: AbortSignal | undefined,
  manager: CallbackManagerForLLMRun | undefined,
): AsyncGenerator<ChatGenerationChunk> {
  const indices = { prompt: 0, completion: 0 };
  let calls = 0;
  for await (const parts of answer) {
    if (signal?.aborted) return;
    for (const part of parts) {
      if (part.type === "call") calls++;
      const text = part.type === "text" ? part.delta : "";
      const chunk = new ChatGenerationChunk({ text, message: toChunk(part, calls - 1) });
      yield chunk;
      const fields = { chunk };
      await manager?.handleLLMNewToken(text, indices, undefined, undefined, undefined, fields);
    }
  }
  const finish_reason = calls > 0 ? "tool_calls" : "stop";
  const end = new AIMessageChunk({
    content: "",
    response_metadata: { finish_reason },
    // The library's type comes out as `never` under our strictness.
    usage_metadata: usage as never,
  });
  yield new ChatGenerationChunk({ text: "", message: end });
}

function toChunk(part: Part, index: number): AIMessageChunk {
  if (part.type === "text") return new AIMessageChunk({ content: part.delta });
  const piece =
    part.type === "call" ? { id: part.id, name: part.name, args: "" } : { args: part.delta };
  return new AIMessageChunk({
    content: "",
    tool_call_chunks: [{ type: "tool_call_chunk", index, ...piece }],
  });
}

async function* events(
  answer: Answer,
  signal: AbortSignal | undefined,
): AsyncGenerator<ChatModelStreamEvent> {
  const blocks = new Blocks();
  yield { event: "message-start" };
  for await (const parts of answer) {
    if (signal?.aborted) return;
    for (const part of parts) {
      if (blocks.isNext(part)) {
        if (blocks.isOpen) yield blocks.finish();
        yield blocks.start(part);
      }
      if (part.type !== "call") yield blocks.delta(part);
    }
  }
  if (blocks.isOpen) yield blocks.finish();
  yield { event: "message-finish", reason: blocks.hasCalls ? "tool_use" : "stop", usage };
}
