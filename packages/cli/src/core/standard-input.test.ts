import { PassThrough, Readable } from "node:stream";
import { afterEach, expect, it, vi } from "vitest";
import type { Io } from "./io.ts";
import { MAX_INPUT_BYTES, readInput } from "./standard-input.ts";

const never = new AbortController().signal;

function io(stdin: Io["stdin"]): Io & { written: string[] } {
  const written: string[] = [];
  const sink = { write: (text: string) => written.push(text) };
  return { stdin, stdout: sink, stderr: sink, env: {}, cwd: "/", signal: never, written };
}

afterEach(() => vi.useRealTimers());

it("reads all of it, also characters that come in pieces, and leaves a byte order mark out", async () => {
  const bytes = Buffer.from("\uFEFFgrüße 🙂");
  const stdin = Readable.from([bytes.subarray(0, 7), bytes.subarray(7)]);
  expect(await readInput(io(stdin), never, false)).toBe("grüße 🙂");
});

it("says what it waits for where a prompt was given and nothing is written", async () => {
  vi.useFakeTimers();
  const stdin = new PassThrough();
  const world = io(stdin);
  const read = readInput(world, never, true);
  vi.advanceTimersByTime(1_999);
  expect(world.written).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(world.written.join("")).toContain("add </dev/null");
  stdin.end("late");
  expect(await read).toBe("late");
});

it("ends at once when it is asked to", async () => {
  const control = new AbortController();
  const read = readInput(io(new PassThrough()), control.signal, true);
  control.abort();
  await expect(read).rejects.toMatchObject({ exitCode: 130 });
});

it("refuses what no model takes", async () => {
  const stdin = Readable.from([Buffer.alloc(MAX_INPUT_BYTES), Buffer.alloc(1)]);
  await expect(readInput(io(stdin), never, true)).rejects.toThrow("More than 16 MB were piped in");
});
