import type { Readable, Writable } from "node:stream";
import { decode, encode, type Envelope, tooLarge } from "./envelope.ts";
import { MAX_FRAME_BYTES } from "./limits.ts";
import { ProtocolError } from "./protocol-error.ts";
import type { Transport, TransportHandler } from "./transport.ts";

const LF = 0x0a;
const CR = 0x0d;

export interface StdioOptions {
  input: Readable | NodeJS.ReadableStream;
  output: Writable | NodeJS.WritableStream;
  /** Default 16 MiB. */
  maxFrameBytes?: number;
}

/**
 * One frame a line over a stream of bytes each way. LF alone ends a line, a CR before it is
 * passed over. A line that is too long is reported and skipped, never kept. Neither stream
 * is ended or destroyed by this: they belong to the process.
 */
export function stdioTransport(options: StdioOptions): Transport {
  return new StdioTransport(options);
}

class StdioTransport implements Transport {
  readonly #input: StdioOptions["input"];
  readonly #output: StdioOptions["output"];
  readonly #maxBytes: number;
  readonly #lines: LineSplitter;
  #handler: TransportHandler | undefined;
  #isClosed = false;
  /** Settles when the output can take more; there while it cannot. */
  #drained: { promise: Promise<void>; settle: () => void } | undefined;
  /** Lines that were handed to the output and have not gone out. */
  #unwritten = 0;
  #whenWritten: (() => void)[] = [];

  constructor({ input, output, maxFrameBytes = MAX_FRAME_BYTES }: StdioOptions) {
    this.#input = input;
    this.#output = output;
    this.#maxBytes = maxFrameBytes;
    this.#lines = new LineSplitter(
      maxFrameBytes,
      (line) => this.#read(line),
      () => this.#handler?.fault(tooLarge(maxFrameBytes)),
    );
    output.on("error", this.#onOutputError);
    output.on("close", this.#onOutputClose);
    output.on("drain", this.#onDrain);
  }

  send(envelope: Envelope): void | Promise<void> {
    if (this.#isClosed) return undefined;
    const line = `${encode(envelope, this.#maxBytes)}\n`;
    this.#unwritten++;
    const canTakeMore = this.#output.write(line, () => {
      this.#unwritten--;
      if (this.#unwritten === 0) this.#settleWritten();
    });
    if (canTakeMore) return undefined;
    if (!this.#drained) {
      let settle: () => void = () => {};
      const promise = new Promise<void>((resolve) => (settle = resolve));
      this.#drained = { promise, settle };
    }
    return this.#drained.promise;
  }

  receive(handler: TransportHandler): void {
    this.#handler = handler;
    this.#input.on("end", this.#onEnd);
    this.#input.on("error", this.#onInputError);
    this.#input.on("close", this.#onEnd);
    this.#input.on("data", this.#onData);
    // One that was over before has nobody left to tell.
    if ("readableEnded" in this.#input && this.#input.readableEnded) queueMicrotask(this.#onEnd);
  }

  async close(): Promise<void> {
    if (this.#unwritten > 0 && !this.#isClosed) {
      await new Promise<void>((resolve) => this.#whenWritten.push(resolve));
    }
    this.#end();
  }

  readonly #onData = (chunk: Uint8Array | string): void => {
    this.#lines.feed(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  };

  readonly #onEnd = (): void => {
    if (this.#isClosed) return;
    this.#lines.end();
    this.#end();
  };

  readonly #onInputError = (error: Error): void => this.#end(error);
  /** A reader that went away is an end like any other. */
  readonly #onOutputError = (error: NodeJS.ErrnoException): void =>
    this.#end(error.code === "EPIPE" ? undefined : error);
  readonly #onOutputClose = (): void => this.#end();

  readonly #onDrain = (): void => {
    this.#drained?.settle();
    this.#drained = undefined;
  };

  #read(line: Uint8Array): void {
    if (this.#isClosed) return;
    let envelope: Envelope;
    try {
      envelope = decode(textOf(line), this.#maxBytes);
    } catch (error) {
      this.#handler?.fault(
        error instanceof ProtocolError
          ? error
          : new ProtocolError("invalid_request", "The frame is not UTF-8.", { cause: error }),
      );
      return;
    }
    this.#handler?.frame(envelope);
  }

  #settleWritten(): void {
    for (const resolve of this.#whenWritten.splice(0)) resolve();
  }

  #end(error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#input.off("data", this.#onData);
    this.#input.off("end", this.#onEnd);
    this.#input.off("close", this.#onEnd);
    this.#input.pause();
    this.#output.off("close", this.#onOutputClose);
    this.#output.off("drain", this.#onDrain);
    // The listeners for errors stay: one that comes late would end the process.
    this.#onDrain();
    this.#settleWritten();
    this.#handler?.closed(error);
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function textOf(line: Uint8Array): string {
  return utf8.decode(line.at(-1) === CR ? line.subarray(0, -1) : line);
}

/** Cuts bytes into lines. Holds one unfinished line at most, and none that is too long. */
class LineSplitter {
  readonly #maxBytes: number;
  readonly #onLine: (line: Uint8Array) => void;
  readonly #onTooLong: () => void;
  // Pieces are joined when the line is whole: a long line in small pieces stays linear.
  #pieces: Uint8Array[] = [];
  #length = 0;
  #isSkipping = false;

  constructor(maxBytes: number, onLine: (line: Uint8Array) => void, onTooLong: () => void) {
    // A CR may stand before the LF.
    this.#maxBytes = maxBytes + 1;
    this.#onLine = onLine;
    this.#onTooLong = onTooLong;
  }

  feed(chunk: Uint8Array): void {
    let from = 0;
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      this.#add(chunk.subarray(from, at));
      this.#finish();
      from = at + 1;
    }
    if (from < chunk.length) this.#add(chunk.subarray(from));
  }

  /** The last line may have no end of its own. */
  end(): void {
    if (this.#length > 0) this.#finish();
  }

  #add(piece: Uint8Array): void {
    if (this.#isSkipping) return;
    this.#length += piece.length;
    if (this.#length <= this.#maxBytes) {
      this.#pieces.push(piece);
      return;
    }
    this.#isSkipping = true;
    this.#pieces = [];
    this.#length = 0;
    this.#onTooLong();
  }

  #finish(): void {
    const pieces = this.#pieces;
    const isSkipped = this.#isSkipping;
    this.#pieces = [];
    this.#length = 0;
    this.#isSkipping = false;
    if (isSkipped) return;
    const [first] = pieces;
    this.#onLine(pieces.length === 1 && first ? first : Buffer.concat(pieces));
  }
}
