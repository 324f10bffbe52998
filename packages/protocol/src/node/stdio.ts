import type { Readable, Writable } from "node:stream";
import { encode, type Envelope } from "../frames/envelope.ts";
import { Backpressure } from "../transports/base/backpressure.ts";
import { Inbox } from "../transports/base/inbox.ts";
import { MAX_FRAME_BYTES } from "../frames/limits.ts";
import { FrameLines } from "../transports/base/frame-lines.ts";
import type { Transport, TransportHandler } from "../transports/base/transport.ts";

export interface StdioOptions {
  input: Readable | NodeJS.ReadableStream;
  output: Writable | NodeJS.WritableStream;
  /** Default 16 MiB. */
  maxFrameBytes?: number;
  /** The longest first line, in bytes. Default: as the others. */
  firstFrameBytes?: number;
}

/**
 * One frame a line over two byte streams. LF ends a line, a CR before it is ignored. A line that is
 * too long is reported and skipped, never kept. The transport ends and destroys neither stream:
 * they belong to the process.
 */
export function openStdio(options: StdioOptions): Transport {
  return new StdioTransport(options);
}

class StdioTransport implements Transport {
  readonly #input: StdioOptions["input"];
  readonly #output: StdioOptions["output"];
  readonly #maxBytes: number;
  readonly #inbox = new Inbox();
  readonly #lines: FrameLines;
  #isClosed = false;
  readonly #backpressure = new Backpressure();
  /** Lines that the output has not written yet. */
  #unwritten = 0;
  #whenWritten: (() => void)[] = [];

  constructor({ input, output, maxFrameBytes = MAX_FRAME_BYTES, firstFrameBytes }: StdioOptions) {
    this.#input = input;
    this.#output = output;
    this.#maxBytes = maxFrameBytes;
    this.#lines = new FrameLines(this.#inbox, {
      maxFrameBytes,
      ...(firstFrameBytes !== undefined && { firstFrameBytes }),
    });
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
    return canTakeMore ? undefined : this.#backpressure.wait();
  }

  receive(handler: TransportHandler): void {
    this.#inbox.open(handler);
    if (this.#isClosed) return;
    this.#input.on("end", this.#onEnd);
    this.#input.on("error", this.#onInputError);
    this.#input.on("close", this.#onEnd);
    this.#input.on("data", this.#onData);
    // An input that has ended before emits no event any more.
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
  /** A reader that went away is a normal end. */
  readonly #onOutputError = (error: NodeJS.ErrnoException): void =>
    this.#end(error.code === "EPIPE" ? undefined : error);
  readonly #onOutputClose = (): void => this.#end();

  readonly #onDrain = (): void => this.#backpressure.release();

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
    // The error listeners stay: a late error without one would end the process.
    this.#onDrain();
    this.#settleWritten();
    this.#inbox.onClose(error);
  }
}
