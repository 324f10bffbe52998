import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type CapturedOutput,
  HEAD_BYTES,
  openSpool,
  OutputCapture,
  type Spool,
  TAIL_BYTES,
} from "./output.ts";

const KEPT_BYTES = HEAD_BYTES + TAIL_BYTES;

/** A spool in memory that has room for so many bytes. */
function memorySpool(room = Number.POSITIVE_INFINITY): Spool & { written: Buffer; closed: number } {
  return {
    path: "/spool/output.txt",
    written: Buffer.alloc(0),
    closed: 0,
    write(bytes) {
      if (this.written.length + bytes.length > room) {
        return Promise.reject(new Error("ENOSPC: no space left on device, write"));
      }
      this.written = Buffer.concat([this.written, bytes]);
      return Promise.resolve();
    },
    close() {
      this.closed++;
      return Promise.resolve();
    },
  };
}

async function captured(
  pieces: readonly Buffer[],
  spool: Spool = memorySpool(),
): Promise<OutputCapture> {
  const capture = new OutputCapture(() => Promise.resolve(spool));
  for (const piece of pieces) await capture.add(piece);
  await capture.close();
  return capture;
}

/** The same bytes, cut into pieces of such sizes. */
function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return [...pieces, bytes.subarray(at)];
}

describe("OutputCapture", () => {
  it("has nothing at first", () => {
    const capture = new OutputCapture(() => Promise.reject(new Error("not asked for")));
    expect(capture.get()).toEqual({ head: "", tail: "", bytes: 0, lines: 0 });
  });

  it("keeps all of it without a file up to the cap", async () => {
    const text = "é\n".repeat(KEPT_BYTES / 3).padEnd(KEPT_BYTES - Math.floor(KEPT_BYTES / 3), "x");
    const bytes = Buffer.from(text);
    expect(bytes.length).toBe(KEPT_BYTES);
    const spool = memorySpool();
    const capture = await captured(cut(bytes, [HEAD_BYTES - 1, 5, 40_000]), spool);
    expect(capture.get().head).toBe(text);
    expect(capture.get().tail).toBe("");
    expect(capture.get().path).toBeUndefined();
    expect(spool.written.length).toBe(0);
  });

  it("gives head, tail and file of any bytes, however they are cut", async () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 70_000 }), { maxLength: 12 });
    const lengths = fc.integer({ min: 0, max: 300_000 });
    await fc.assert(
      fc.asyncProperty(lengths, sizes, async (length, sizes) => {
        const text = Array.from({ length: length / 6 }, (_, n) => `${n % 7}`).join("abc\n-");
        const bytes = Buffer.from(text);
        const spool = memorySpool();
        const output = (await captured(cut(bytes, sizes), spool)).get();
        const isLong = bytes.length > KEPT_BYTES;
        expect(output.head).toBe(isLong ? text.slice(0, HEAD_BYTES) : text);
        expect(output.tail).toBe(isLong ? text.slice(-TAIL_BYTES) : "");
        expect(output.bytes).toBe(bytes.length);
        expect(output.lines).toBe(text === "" ? 0 : text.split("\n").length);
        expect(spool.written.equals(isLong ? bytes : Buffer.alloc(0))).toBe(true);
        expect(spool.closed).toBe(isLong ? 1 : 0);
        expect(output.path).toBe(isLong ? spool.path : undefined);
      }),
      { numRuns: 100 },
    );
  });

  it.each([0, 1, 2, 3])("cuts no character in two (shifted by %i)", async (shift) => {
    const bytes = Buffer.from("x".repeat(shift) + "😀".repeat(KEPT_BYTES));
    const output = (await captured([bytes])).get();
    expect(output.head).toMatch(/^x*(?:😀)+$/u);
    expect(output.tail).toMatch(/^(?:😀)+$/u);
  });

  it("takes bytes that are no text", async () => {
    const output = (await captured([Buffer.alloc(KEPT_BYTES + 10, 0x80)])).get();
    expect(output.head).toMatch(/^\u{fffd}+$/u);
    expect(output.tail).toMatch(/^\u{fffd}+$/u);
    expect(output.bytes).toBe(KEPT_BYTES + 10);
  });

  it("does not count an end of line that is missing as a line less", async () => {
    expect((await captured([Buffer.from("a\nb")])).get().lines).toBe(2);
    expect((await captured([Buffer.from("a\nb\n")])).get().lines).toBe(2);
  });

  it("stops writing to a disk that is full, says so, and keeps the tail", async () => {
    const spool = memorySpool(100_000);
    const pieces = Array.from({ length: 10 }, (_, n) => Buffer.alloc(20_000, `${n}`));
    const output = (await captured(pieces, spool)).get();
    expect(output).toMatchObject({
      bytes: 200_000,
      path: spool.path,
      lost: "ENOSPC: no space left on device, write",
    });
    expect(output.tail.endsWith("9".repeat(20_000))).toBe(true);
    expect(spool.closed).toBe(1);
  });

  it("asks to be waited for only while it writes to the disk", async () => {
    let done = (): void => {};
    const slow: Spool = {
      ...memorySpool(),
      write: () =>
        new Promise((resolve) => {
          done = resolve;
        }),
    };
    const capture = new OutputCapture(() => Promise.resolve(slow));
    expect(capture.add(Buffer.alloc(KEPT_BYTES))).toBeUndefined();
    const waiting = capture.add(Buffer.alloc(1));
    let isOver = false;
    void waiting?.then(() => {
      isOver = true;
    });
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    expect(isOver).toBe(false);
    done();
    for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    done();
    await waiting;
    expect(isOver).toBe(true);
  });
});

describe("files for long output", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "gyre-spool-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const limits = { streamBytes: 100_000, folderBytes: 150_000, checkBytes: 10_000 };

  async function spoolBytes(count: number): Promise<CapturedOutput> {
    const capture = new OutputCapture(() => openSpool(folder, limits));
    for (let left = count; left > 0; left -= 7_000) {
      await capture.add(Buffer.alloc(Math.min(left, 7_000), "x"));
    }
    await capture.close();
    return capture.get();
  }

  it("end at a size, and that is reported", async () => {
    const { path = "", bytes, lost } = await spoolBytes(200_000);
    expect(bytes).toBe(200_000);
    expect((await stat(path)).size).toBe(100_000);
    expect(lost).toBe("only the first 98 KB of a stream are kept");
    expect((await spoolBytes(80_000)).lost).toBe(
      "the output that is kept of this session has reached 146 KB",
    );
  });

  it("take no more than they may together", async () => {
    await Promise.all([spoolBytes(90_000), spoolBytes(90_000), spoolBytes(90_000)]);
    expect((await spoolBytes(90_000)).lost).toBeDefined();
    const sizes = (await readdir(folder)).map(
      async (name) => (await stat(join(folder, name))).size,
    );
    const all = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    expect(all).toBeLessThanOrEqual(limits.folderBytes + 4 * limits.checkBytes + KEPT_BYTES);
  });
});
