import {
  type BaseModelConfig,
  Model,
  type ModelStreamEvent,
  type StreamOptions,
} from "@strands-agents/sdk";
import type { Answer, Work } from "../peer.ts";

/** The scripted model: a subclass of `Model` with a generator, as the library's clients are. */
export class ScriptedModel extends Model {
  readonly #answer: Work["answer"];
  readonly #heedsWaiting: boolean;
  #asked = 0;
  #config: BaseModelConfig = { modelId: "bench" };

  /**
   * `heedsWaiting`: an abort ends a wait for the next read too, as it does in the library's
   * clients. It is left out where nothing stalls, for the time it takes.
   */
  constructor(answer: Work["answer"], heedsWaiting = false) {
    super();
    this.#answer = answer;
    this.#heedsWaiting = heedsWaiting;
  }

  override updateConfig(config: BaseModelConfig): void {
    this.#config = { ...this.#config, ...config };
  }

  override getConfig(): BaseModelConfig {
    return this.#config;
  }

  override stream(_messages: unknown, options?: StreamOptions): AsyncIterable<ModelStreamEvent> {
    const answer = this.#answer(this.#asked++);
    const signal = options?.cancelSignal;
    return streamEvents(
      this.#heedsWaiting && signal ? untilAborted(answer, signal) : answer,
      signal,
    );
  }
}

async function* untilAborted(answer: Answer, signal: AbortSignal): Answer {
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  const reads = answer[Symbol.asyncIterator]();
  for (;;) {
    const read = await Promise.race([reads.next(), aborted]);
    if (read.done) return;
    yield read.value;
  }
}

async function* streamEvents(
  answer: Answer,
  signal?: AbortSignal,
): AsyncGenerator<ModelStreamEvent> {
  let open: "text" | "call" | undefined;
  let called = false;
  yield { type: "modelMessageStartEvent", role: "assistant" };
  for await (const parts of answer) {
    // The library's own clients throw when the request is aborted.
    signal?.throwIfAborted();
    for (const part of parts) {
      if (part.type === "arguments") {
        yield {
          type: "modelContentBlockDeltaEvent",
          delta: { type: "toolUseInputDelta", input: part.delta },
        };
      } else if (part.type === "text") {
        if (open !== "text") {
          if (open) yield { type: "modelContentBlockStopEvent" };
          yield { type: "modelContentBlockStartEvent" };
          open = "text";
        }
        yield {
          type: "modelContentBlockDeltaEvent",
          delta: { type: "textDelta", text: part.delta },
        };
      } else {
        if (open) yield { type: "modelContentBlockStopEvent" };
        yield {
          type: "modelContentBlockStartEvent",
          start: { type: "toolUseStart", name: part.name, toolUseId: part.id },
        };
        open = "call";
        called = true;
      }
    }
  }
  if (open) yield { type: "modelContentBlockStopEvent" };
  yield {
    type: "modelMetadataEvent",
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  };
  yield { type: "modelMessageStopEvent", stopReason: called ? "toolUse" : "endTurn" };
}
