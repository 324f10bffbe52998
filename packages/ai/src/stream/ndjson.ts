import { checkLength, type Framing, type OnPayload, type Payload, Utf8Reader } from "./sse.ts";

/**
 * One payload a line, as in NDJSON: lines end in LF or CRLF, and empty ones are passed
 * over. A last line without its end is unterminated.
 */
export class LineDecoder implements Framing {
  readonly #onPayload: OnPayload;
  readonly #reader = new Utf8Reader("by line");
  #bytes = 0;
  /** The beginning of a line whose end has not come yet; not looked at until it has. */
  #rest = "";

  constructor(onPayload: OnPayload) {
    this.#onPayload = onPayload;
  }

  feed(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    this.#read(this.#reader.read(bytes));
  }

  end(): Payload | undefined {
    this.#read(this.#reader.end());
    const data = withoutCr(this.#rest);
    this.#rest = "";
    return data === "" ? undefined : { data };
  }

  #read(text: string): void {
    let at = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", at)) {
      const line = withoutCr(this.#rest + text.slice(at, end));
      this.#rest = "";
      at = end + 1;
      checkLength(line.length, this.#bytes);
      if (line !== "") this.#onPayload(line, undefined);
    }
    this.#rest += text.slice(at);
    checkLength(this.#rest.length, this.#bytes);
  }
}

function withoutCr(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
