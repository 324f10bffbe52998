import type { Answer, Part } from "./peer.ts";

/** Makes chunks of the parts of an answer. */
export interface ChunkWriter<Chunk> {
  write(part: Part, out: ReadableStreamDefaultController<Chunk>): void;
  end(out: ReadableStreamDefaultController<Chunk>): void;
}

/** As with a body that is fetched, the next read waits until the last one is taken. */
export function pullAnswer<Chunk>(
  answer: Answer,
  writer: ChunkWriter<Chunk>,
  signal: AbortSignal | undefined,
): UnderlyingDefaultSource<Chunk> {
  const reads = answer[Symbol.asyncIterator]();
  return {
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
    // Not awaited: a read that stalls would hold up the cancellation.
    cancel: () => void reads.return?.(),
  };
}
