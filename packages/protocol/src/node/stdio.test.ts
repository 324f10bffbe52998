import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { PassThrough, Readable, Writable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encode, type Envelope } from "../frames/envelope.ts";
import { openStdio } from "./stdio.ts";
import type { Transport } from "../transports/base/transport.ts";

function frame(id: string, text = ""): Envelope {
  return { v: 1, type: "x", id, payload: { text } };
}

interface Heard {
  frames: Envelope[];
  faults: string[];
  closed: (Error | undefined)[];
  end: Promise<void>;
}

function hear(transport: Transport): Heard {
  let ended: () => void = () => {};
  const end = new Promise<void>((resolve) => (ended = resolve));
  const heard: Heard = { frames: [], faults: [], closed: [], end };
  transport.receive({
    onFrame: (each) => heard.frames.push(each),
    onFault: ({ code }) => heard.faults.push(code),
    onClose: (error) => {
      heard.closed.push(error);
      ended();
    },
  });
  return heard;
}

/** All that comes of bytes in these pieces, to the end. */
async function readAll(
  pieces: readonly (string | Uint8Array)[],
  maxFrameBytes?: number,
): Promise<Heard> {
  const input = Readable.from(
    pieces.filter(({ length }) => length > 0).map((piece) => Buffer.from(piece)),
    { objectMode: false },
  );
  const options = { input, output: new PassThrough() };
  const heard = hear(
    openStdio(maxFrameBytes === undefined ? options : { ...options, maxFrameBytes }),
  );
  await heard.end;
  return heard;
}

const BYTES = Buffer.from(`${encode(frame("1", "ä€😀\u2028\u2029\u0085"))}\n`);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

describe("a line on stdio: LF alone ends a line", () => {
  it("reads lines, however the bytes are cut, also in the middle of a character", async () => {
    for (let at = 0; at <= BYTES.length; at++) {
      const { frames, faults } = await readAll([BYTES.subarray(0, at), BYTES.subarray(at)]);
      expect(faults).toEqual([]);
      expect(frames).toEqual([frame("1", "ä€😀\u2028\u2029\u0085")]);
    }
  });

  it("does not end a line at U+2028 or any other separator", async () => {
    const raw = '{"v":1,"type":"x","id":"1","payload":{"text":"a\u2028b\u2029c\u0085d"}}\n';
    expect((await readAll([raw])).frames).toEqual([frame("1", "a\u2028b\u2029c\u0085d")]);
  });

  it("passes over a CR before the LF", async () => {
    const { frames, faults } = await readAll([`${encode(frame("1"))}\r\n${encode(frame("2"))}\n`]);
    expect([frames, faults]).toEqual([[frame("1"), frame("2")], []]);
  });

  it("reads a last line without its end", async () => {
    const { frames, closed } = await readAll([`${encode(frame("1"))}\n${encode(frame("2"))}`]);
    expect(frames.map(({ id }) => id)).toEqual(["1", "2"]);
    expect(closed).toEqual([undefined]);
  });

  it("reports a line that is not JSON, an empty one, or not UTF-8, and goes on", async () => {
    const { frames, faults } = await readAll([
      "nope\n\n",
      Buffer.from([0xff, 0xfe, 0x0a]),
      `${encode(frame("1"))}\n`,
    ]);
    expect(faults).toEqual(["invalid_request", "invalid_request", "invalid_request"]);
    expect(frames).toEqual([frame("1")]);
  });

  it("answers random bytes with faults, and reads what comes after them", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 40 })), async (pieces) => {
        const { frames, closed } = await readAll([...pieces, "\n", `${encode(frame("last"))}\n`]);
        expect(frames.at(-1)).toEqual(frame("last"));
        expect(closed).toEqual([undefined]);
      }),
    );
  });
});

describe("frame 16 MiB: a line above the limit is too_large", () => {
  const LIMIT = 100;

  it("takes a line of just the limit, with CR too, and none above it", async () => {
    const room = LIMIT - encode(frame("1")).length;
    const most = encode(frame("1", "x".repeat(room)));
    const more = encode(frame("2", "x".repeat(room + 1)));
    const { frames, faults } = await readAll([`${most}\r\n${more}\n${more}\r\n`], LIMIT);
    expect(frames.map(({ id }) => id)).toEqual(["1"]);
    expect(faults).toEqual(["too_large", "too_large"]);
  });

  it("is reported once and skipped without being kept, in whatever pieces", async () => {
    const MIB = 1024 * 1024;
    const input = new PassThrough();
    const heard = hear(openStdio({ input, output: new PassThrough(), maxFrameBytes: LIMIT }));
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    for (let i = 0; i < 512; i++) {
      const drained = new Promise((resolve) => input.once("drain", resolve));
      if (!input.write(Buffer.alloc(MIB, "x"))) await drained;
      if (i % 64 > 0) continue;
      collectGarbage();
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }
    // Half a gigabyte went by.
    expect(most).toBeLessThan(256 * MIB);
    input.end(`\n${encode(frame("1"))}\n`);
    await heard.end;
    expect(heard.faults).toEqual(["too_large"]);
    expect(heard.frames).toEqual([frame("1")]);
  });

  it("refuses to send one", () => {
    const transport = openStdio({
      input: new PassThrough(),
      output: new PassThrough(),
      maxFrameBytes: LIMIT,
    });
    expect(() => transport.send(frame("1", "x".repeat(LIMIT)))).toThrow(/at most 100 bytes/);
  });
});

describe("sending", () => {
  it("writes one line a frame, and asks to wait while the reader lags", async () => {
    const written: string[] = [];
    let goOn: () => void = () => {};
    const output = new Writable({
      highWaterMark: 1,
      write(chunk: Buffer, _encoding, done) {
        written.push(chunk.toString());
        goOn = done;
      },
    });
    const transport = openStdio({ input: new PassThrough(), output });
    hear(transport);
    const first = transport.send(frame("1"));
    expect(first).toBeInstanceOf(Promise);
    let isFree = false;
    void first?.then(() => (isFree = true));
    await Promise.resolve();
    expect(isFree).toBe(false);
    goOn();
    await first;
    const second = transport.send(frame("2"));
    goOn();
    await second;
    expect(written).toEqual([`${encode(frame("1"))}\n`, `${encode(frame("2"))}\n`]);
  });

  it("closes after what was sent has gone out, and leaves the streams open", async () => {
    const output = new PassThrough();
    const transport = openStdio({ input: new PassThrough(), output });
    const heard = hear(transport);
    void transport.send(frame("1"));
    await transport.close();
    expect(heard.closed).toEqual([undefined]);
    expect(output.writableEnded).toBe(false);
    expect(String(output.read())).toBe(`${encode(frame("1"))}\n`);
    void transport.send(frame("2"));
    expect(output.read()).toBeNull();
  });

  it.each([
    ["EPIPE is an end like any other", Object.assign(new Error("gone"), { code: "EPIPE" }), true],
    ["another error is reported", Object.assign(new Error("bad disk"), { code: "EIO" }), false],
  ])("%s", async (_, error, isQuiet) => {
    const output = new Writable({ write: (_chunk, _encoding, done) => done(error) });
    const transport = openStdio({ input: new PassThrough(), output });
    const heard = hear(transport);
    const wait = transport.send(frame("1"));
    await heard.end;
    await wait;
    expect(heard.closed).toEqual([isQuiet ? undefined : error]);
    expect(transport.send(frame("2"))).toBeUndefined();
    await transport.close();
  });

  it("ends with an error of the input", async () => {
    const input = new PassThrough();
    const heard = hear(openStdio({ input, output: new PassThrough() }));
    const error = new Error("cable");
    input.destroy(error);
    await heard.end;
    expect(heard.closed).toEqual([error]);
  });
});
