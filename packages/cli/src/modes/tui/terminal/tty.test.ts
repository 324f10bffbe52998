import { PassThrough, Writable } from "node:stream";
import { expect, it, vi } from "vitest";
import { Tty } from "./tty.ts";

const KIB = 1024;

/** A terminal that reads when `release` is called. */
function openSlow(highWaterMark: number): {
  output: Writable;
  release: () => void;
} {
  const held: (() => void)[] = [];
  const output = new Writable({
    highWaterMark,
    write: (_chunk, _encoding, done) => void held.push(done),
    writev: (_chunks, done) => void held.push(done),
  });
  return {
    output,
    release: () => {
      for (const done of held.splice(0)) done();
    },
  };
}

// Streams of Node 20 have the first limit, those of 22 and later the second.
it.each([16 * KIB, 64 * KIB])(
  "reports when a slow terminal has read what waited, with a limit of the stream of %d bytes",
  async (limit) => {
    const { output, release } = openSlow(limit);
    const tty = new Tty(new PassThrough(), output);
    const caughtUp = vi.fn<() => void>();
    tty.listen({ data: () => {}, resize: () => {}, end: () => {}, caughtUp });
    tty.write("x".repeat(10 * KIB));
    tty.write("x".repeat(10 * KIB));
    expect(tty.isBehind).toBe(true);
    expect(caughtUp).not.toHaveBeenCalled();
    release();
    await vi.waitFor(() => expect(caughtUp).toHaveBeenCalled());
    expect(tty.isBehind).toBe(false);
  },
);
