/** Finds messages in a stream of bytes that arrives in pieces. Each is joined once: long ones stay linear. */
export interface MessageReader {
  /** False as soon as a message has more bytes than it may: nothing more is read. */
  feed(bytes: Buffer): boolean;
}

/** How messages are separated on a pipe. */
export interface Framing {
  /** A message as it is written. */
  wrap(text: string): string;
  createReader(maxBytes: number, onMessage: (text: string) => void): MessageReader;
}

const NEWLINE = 10;
const HEADER_END = "\r\n\r\n";
const MAX_HEADER_BYTES = 8_192;
const LENGTH = /^content-length: *(\d{1,15}) *$/im;

/** A line a message, as MCP has it. */
export const LINES: Framing = {
  wrap: (text) => `${text}\n`,
  createReader: (maxBytes, onMessage) => new LineReader(maxBytes, onMessage),
};

/** A header with the number of bytes before each message, as language servers have it. */
export const HEADERS: Framing = {
  wrap: (text) => `Content-Length: ${Buffer.byteLength(text)}${HEADER_END}${text}`,
  createReader: (maxBytes, onMessage) => new HeaderReader(maxBytes, onMessage),
};

class LineReader implements MessageReader {
  readonly #maxBytes: number;
  readonly #onMessage: (text: string) => void;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number, onMessage: (text: string) => void) {
    this.#maxBytes = maxBytes;
    this.#onMessage = onMessage;
  }

  feed(bytes: Buffer): boolean {
    let rest = bytes;
    for (let at = rest.indexOf(NEWLINE); at >= 0; at = rest.indexOf(NEWLINE)) {
      if (!this.#keep(rest.subarray(0, at))) return false;
      rest = rest.subarray(at + 1);
      const line = Buffer.concat(this.#pieces).toString("utf8").trim();
      this.#pieces = [];
      this.#bytes = 0;
      if (line !== "") this.#onMessage(line);
    }
    return this.#keep(rest);
  }

  #keep(piece: Buffer): boolean {
    this.#bytes += piece.length;
    if (this.#bytes > this.#maxBytes) {
      this.#pieces = [];
      return false;
    }
    if (piece.length > 0) this.#pieces.push(piece);
    return true;
  }
}

class HeaderReader implements MessageReader {
  readonly #maxBytes: number;
  readonly #onMessage: (text: string) => void;
  #header = Buffer.alloc(0);
  #pieces: Buffer[] = [];
  /** Bytes of the message that are still to come; undefined in a header. */
  #missing: number | undefined;

  constructor(maxBytes: number, onMessage: (text: string) => void) {
    this.#maxBytes = maxBytes;
    this.#onMessage = onMessage;
  }

  feed(bytes: Buffer): boolean {
    let rest = bytes;
    while (rest.length > 0) {
      if (this.#missing === undefined) {
        const body = this.#readHeader(rest);
        if (body === undefined) return this.#header.length <= MAX_HEADER_BYTES;
        rest = body;
        if (this.#missing === undefined || this.#missing > this.#maxBytes) return false;
      }
      const piece = rest.subarray(0, this.#missing);
      rest = rest.subarray(piece.length);
      this.#pieces.push(piece);
      this.#missing -= piece.length;
      if (this.#missing === 0) this.#end();
    }
    return true;
  }

  /** What comes after the header; undefined where it is not whole. */
  #readHeader(bytes: Buffer): Buffer | undefined {
    const joined = Buffer.concat([this.#header, bytes]);
    const end = joined.indexOf(HEADER_END);
    if (end < 0) {
      this.#header = joined;
      return undefined;
    }
    const length = LENGTH.exec(joined.toString("latin1", 0, end))?.[1];
    this.#header = Buffer.alloc(0);
    this.#missing = length === undefined ? undefined : Number(length);
    if (this.#missing === 0) this.#end();
    return joined.subarray(end + HEADER_END.length);
  }

  #end(): void {
    const text = Buffer.concat(this.#pieces).toString("utf8");
    this.#pieces = [];
    this.#missing = undefined;
    if (text !== "") this.#onMessage(text);
  }
}
