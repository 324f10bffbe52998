import type { LanguageModel } from "ai";
import { type ChunkWriter, pullAnswer } from "../answer-stream.ts";
import type { Part, Work } from "../peer.ts";

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type StreamPart =
  Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

const usage = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};

/**
 * A model that says what `work` has it say: an object of the documented interface. The
 * mock of "ai/test" is the same thing with a record of every request, which would keep
 * each turn's copy of the history alive.
 */
export function createModel(work: Work): Model {
  let asked = 0;
  return {
    specificationVersion: "v4",
    provider: "bench",
    modelId: "bench",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("This model only streams.")),
    async doStream({ abortSignal }) {
      // As in the library's providers, nothing is read ahead of the consumer.
      return {
        stream: new ReadableStream(pullAnswer(work.answer(asked++), new Writer(), abortSignal)),
      };
    },
  };
}

/** Puts the starts and ends around blocks, as the library's providers do. */
class Writer implements ChunkWriter<StreamPart> {
  #blocks = 0;
  #open: "text" | "call" | undefined;
  #id = "";
  #name = "";
  #json = "";
  #calls = false;

  write(part: Part, out: ReadableStreamDefaultController<StreamPart>): void {
    if (part.type === "text") {
      if (this.#open !== "text") {
        this.#close(out);
        this.#open = "text";
        this.#id = String(this.#blocks++);
        out.enqueue({ type: "text-start", id: this.#id });
      }
      out.enqueue({ type: "text-delta", id: this.#id, delta: part.delta });
    } else if (part.type === "call") {
      this.#close(out);
      this.#open = "call";
      this.#calls = true;
      this.#id = part.id;
      this.#name = part.name;
      this.#json = "";
      out.enqueue({ type: "tool-input-start", id: part.id, toolName: part.name });
    } else {
      this.#json += part.delta;
      out.enqueue({ type: "tool-input-delta", id: this.#id, delta: part.delta });
    }
  }

  end(out: ReadableStreamDefaultController<StreamPart>): void {
    this.#close(out);
    const unified = this.#calls ? "tool-calls" : "stop";
    out.enqueue({ type: "finish", finishReason: { unified, raw: undefined }, usage });
  }

  #close(out: ReadableStreamDefaultController<StreamPart>): void {
    if (this.#open === "text") out.enqueue({ type: "text-end", id: this.#id });
    if (this.#open === "call") {
      out.enqueue({ type: "tool-input-end", id: this.#id });
      out.enqueue({
        type: "tool-call",
        toolCallId: this.#id,
        toolName: this.#name,
        input: this.#json,
      });
    }
    this.#open = undefined;
  }
}
