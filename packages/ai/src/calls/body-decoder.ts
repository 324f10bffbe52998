import { type Framing, FramingError, type OnPayload } from "../stream/sse.ts";

/** An answer that is read as a whole may be this long: 2,048 vectors of 3,072 numbers are a third of it. */
export const MAX_BODY_BYTES: number = 256 * 1024 * 1024;

/** A body that is one payload. */
export class BodyDecoder implements Framing {
  readonly #onPayload: OnPayload;
  readonly #decoder = new TextDecoder();
  readonly #pieces: string[] = [];
  #bytes = 0;

  constructor(onPayload: OnPayload) {
    this.#onPayload = onPayload;
  }

  feed(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    if (this.#bytes > MAX_BODY_BYTES) {
      throw new FramingError(`It has more than ${MAX_BODY_BYTES} bytes`, this.#bytes);
    }
    this.#pieces.push(this.#decoder.decode(bytes, { stream: true }));
  }

  end(): undefined {
    this.#pieces.push(this.#decoder.decode());
    this.#onPayload(this.#pieces.join(""), undefined);
  }
}
