import { decodeUtf8, type Framing, FramingError } from "../../stream/sse.ts";

/**
 * An event of the service; an exception that its interface names, as the event; or an
 * error of the connection, with its code as the event and its message as the data.
 */
export type AwsMessageKind = "event" | "exception" | "error";

/** Called once for each whole message, in order, while `feed` runs. */
export type OnAwsPayload = (data: string, event: string | undefined, kind: AwsMessageKind) => void;

/** The longest message that AWS allows. */
export const MAX_MESSAGE_BYTES: number = 24 * 1024 * 1024;

/** The longest headers of one message that AWS allows. */
export const MAX_HEADERS_BYTES: number = 128 * 1024;

const HEADERS_LENGTH_AT = 4;
const LENGTHS_BYTES = 8;
const CRC_BYTES = 4;
const PRELUDE_BYTES = LENGTHS_BYTES + CRC_BYTES;
/** What a message has beside its headers and its payload. */
const FRAME_BYTES = PRELUDE_BYTES + CRC_BYTES;

/**
 * The binary format `application/vnd.amazon.eventstream`. Both checksums of each
 * message are compared; a message that is cut off is never dispatched.
 */
export class AwsEventStreamDecoder implements Framing {
  readonly #onPayload: OnAwsPayload;
  /** Where the message begins that is being read. */
  #start = 0;
  /** The message as far as it has come: room for its prelude first, then for all of it. */
  #message = new Uint8Array(PRELUDE_BYTES);
  #length = 0;

  constructor(onPayload: OnAwsPayload) {
    this.#onPayload = onPayload;
  }

  /** Bytes were left over that make no whole message. */
  get incomplete(): boolean {
    return this.#length > 0;
  }

  feed(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const taken = Math.min(this.#message.length - this.#length, bytes.length - at);
      this.#message.set(bytes.subarray(at, at + taken), this.#length);
      this.#length += taken;
      at += taken;
      if (this.#length < this.#message.length) return;
      if (this.#length === PRELUDE_BYTES) this.#makeRoom();
      else this.#finish();
    }
  }

  /** Half a message is not readable: ask `incomplete`. */
  end(): undefined {
    return undefined;
  }

  #makeRoom(): void {
    const prelude = this.#message;
    this.#check(prelude, LENGTHS_BYTES, "The prelude of a message");
    const view = createView(prelude);
    const total = view.getUint32(0);
    const headers = view.getUint32(HEADERS_LENGTH_AT);
    if (total < FRAME_BYTES || total > MAX_MESSAGE_BYTES) {
      throw this.#error(`A message cannot be ${total} bytes long`);
    }
    if (headers > MAX_HEADERS_BYTES || headers > total - FRAME_BYTES) {
      throw this.#error(`A message of ${total} bytes cannot have ${headers} bytes of headers`);
    }
    this.#message = new Uint8Array(total);
    this.#message.set(prelude);
  }

  #finish(): void {
    const message = this.#message;
    const end = message.length - CRC_BYTES;
    this.#check(message, end, "A message");
    const headersEnd = PRELUDE_BYTES + createView(message).getUint32(HEADERS_LENGTH_AT);
    const headers = this.#headers(message, headersEnd);
    const payload = decodeUtf8(message.subarray(headersEnd, end));

    this.#start += message.length;
    this.#message = new Uint8Array(PRELUDE_BYTES);
    this.#length = 0;
    switch (headers.get(":message-type")) {
      case "exception":
        this.#onPayload(payload, headers.get(":exception-type"), "exception");
        break;
      case "error":
        this.#onPayload(
          headers.get(":error-message") ?? payload,
          headers.get(":error-code"),
          "error",
        );
        break;
      default:
        this.#onPayload(payload, headers.get(":event-type"), "event");
    }
  }

  /** The checksum at `end` must be that of all bytes before it. */
  #check(bytes: Uint8Array, end: number, what: string): void {
    if (createView(bytes).getUint32(end) === crc32(bytes, end)) return;
    throw this.#error(`${what} does not match its checksum`);
  }

  /** The headers whose value is a string; of the others only the size matters. */
  #headers(message: Uint8Array, end: number): Map<string, string> {
    const found = new Map<string, string>();
    const view = createView(message);
    let at = PRELUDE_BYTES;
    const take = (bytes: number): number => {
      const from = at;
      at += bytes;
      if (at > end) throw this.#error("A header goes beyond the headers of its message");
      return from;
    };
    while (at < end) {
      const nameBytes = view.getUint8(take(1));
      const name = take(nameBytes);
      const type = view.getUint8(take(1));
      const size = type === BYTES || type === STRING ? view.getUint16(take(2)) : VALUE_BYTES[type];
      if (size === undefined) throw this.#error(`A header has the unknown type ${type}`);
      const value = take(size);
      if (type !== STRING) continue;
      found.set(
        decodeUtf8(message.subarray(name, name + nameBytes)),
        decodeUtf8(message.subarray(value, value + size)),
      );
    }
    return found;
  }

  #error(what: string): FramingError {
    return new FramingError(what, this.#start + this.#length);
  }
}

const BYTES = 6;
const STRING = 7;

/** The size of a header's value by its type; two types say their size themselves. */
const VALUE_BYTES: readonly (number | undefined)[] = [
  0, // true
  0, // false
  1, // a byte
  2, // a short
  4, // an integer
  8, // a long
  undefined, // bytes
  undefined, // a string
  8, // a time
  16, // a UUID
];

function createView(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The polynomial of CRC-32, lowest bit first. */
const POLYNOMIAL = 0xedb88320;

const CRC_OF_BYTE: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
  return crc;
});

/** The CRC-32 of the first `end` bytes. */
export function crc32(bytes: Uint8Array, end: number = bytes.length): number {
  let crc = -1;
  for (let at = 0; at < end; at++) {
    crc = (CRC_OF_BYTE[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}
