import type { MastraLanguageModel } from "@mastra/core/agent";
import type { Answer, Part, Work } from "../peer.ts";

type Model = Extract<MastraLanguageModel, { specificationVersion: "v2" }>;
type Chunks = Awaited<ReturnType<Model["doStream"]>>["stream"];
type Out = { enqueue: (chunk: Chunks extends ReadableStream<infer Chunk> ? Chunk : never) => void };

/**
 * The interface of the library's own mock, and the one of the three it takes that it
 * passes on as it is: it rewrites prompts for a V3 model, and for a V4 model it pipes
 * the stream through one more.
 */
export function model(work: Work): Model {
  let asked = 0;
  const stream = async ({ abortSignal }: { abortSignal?: AbortSignal }) => ({
    stream: toChunks(work.answer(asked++), abortSignal),
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

/** As with a body that is fetched, the next read waits until the last one is taken. */
function toChunks(answer: Answer, signal?: AbortSignal): Chunks {
  const reads = answer[Symbol.asyncIterator]();
  const writer = new Writer();
  return new ReadableStream({
    start: (out) => out.enqueue({ type: "stream-start", warnings: [] }),
    async pull(out) {
      for (;;) {
        const read = await reads.next();
        signal?.throwIfAborted();
        if (read.done) {
          writer.end(out);
          out.close();
          return;
        }
        for (const part of read.value) writer.write(part, out);
        // A pull that gives nothing is not followed by another one.
        if (read.value.length > 0) return;
      }
    },
    // A read that never comes would hold the one who cancels, so it is not awaited.
    cancel: () => void reads.return?.(),
  });
}

class Writer {
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
