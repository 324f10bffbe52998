import type { MastraLanguageModel } from "@mastra/core/agent";
import { type ChunkWriter, pullAnswer } from "../answer-stream.ts";
import type { Part, Work } from "../peer.ts";

type Model = Extract<MastraLanguageModel, { specificationVersion: "v2" }>;
type Chunk =
  Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer C> ? C : never;
type Out = { enqueue: (chunk: Chunk) => void };

/**
 * The interface of the library's own mock, and the one of the three it takes that it
 * passes on as it is: it rewrites prompts for a V3 model, and for a V4 model it pipes
 * the stream through one more.
 */
export function model(work: Work): Model {
  let asked = 0;
  const stream = async ({ abortSignal }: { abortSignal?: AbortSignal }) => ({
    stream: new ReadableStream<Chunk>({
      start: (out) => out.enqueue({ type: "stream-start", warnings: [] }),
      ...pullAnswer(work.answer(asked++), new Writer(), abortSignal),
    }),
  });
  return {
    specificationVersion: "v2",
    provider: "bench",
    modelId: "bench",
    supportedUrls: {},
    doStream: stream,
    doGenerate: stream,
  };
}

class Writer implements ChunkWriter<Chunk> {
  #text = false;
  #call: { id: string; name: string; input: string } | undefined;
  #called = false;

  write(part: Part, out: Out): void {
    if (part.type === "text") {
      if (!this.#text) out.enqueue({ type: "text-start", id: "text" });
      this.#text = true;
      out.enqueue({ type: "text-delta", id: "text", delta: part.delta });
    } else if (part.type === "call") {
      this.#close(out);
      this.#call = { id: part.id, name: part.name, input: "" };
      this.#called = true;
      out.enqueue({ type: "tool-input-start", id: part.id, toolName: part.name });
    } else if (this.#call) {
      this.#call.input += part.delta;
      out.enqueue({ type: "tool-input-delta", id: this.#call.id, delta: part.delta });
    }
  }

  end(out: Out): void {
    this.#close(out);
    out.enqueue({
      type: "finish",
      finishReason: this.#called ? "tool-calls" : "stop",
      usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
    });
  }

  /** Ends the text or the call that was being written. */
  #close(out: Out): void {
    if (this.#text) out.enqueue({ type: "text-end", id: "text" });
    this.#text = false;
    if (!this.#call) return;
    const { id, name, input } = this.#call;
    out.enqueue({ type: "tool-input-end", id });
    out.enqueue({ type: "tool-call", toolCallId: id, toolName: name, input });
    this.#call = undefined;
  }
}
