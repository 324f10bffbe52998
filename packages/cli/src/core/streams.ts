import { Console } from "node:console";
import { Readable, Writable } from "node:stream";
import type { Sink } from "./io.ts";

export function createReadable(stream: NodeJS.ReadableStream): Readable {
  return stream instanceof Readable ? stream : Readable.from(stream);
}

/** A stream for what only has a `write`. It waits where the reader is slower. */
export function createWritable(sink: Sink): Writable {
  return new Writable({
    decodeStrings: false,
    write(chunk: string | Buffer, _encoding, done) {
      if (sink.write(String(chunk)) !== false || !isEmitter(sink)) return done();
      const settle = (): void => {
        sink.off("drain", settle);
        sink.off("close", settle);
        done();
      };
      sink.once("drain", settle);
      sink.once("close", settle);
    },
  });
}

/** Whatever is written to the console goes to stderr, until the returned function is called. */
export function redirectConsole(stderr: Sink): () => void {
  const output = createWritable(stderr);
  const own: object = new Console(output, output);
  const before = { ...console };
  Object.assign(console, own);
  return () => void Object.assign(console, before);
}

interface Emitter {
  once(name: string, run: () => void): unknown;
  off(name: string, run: () => void): unknown;
}

function isEmitter(sink: Sink): sink is Sink & Emitter {
  return "once" in sink && typeof sink.once === "function" && "off" in sink;
}
