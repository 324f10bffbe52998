import { ProtocolError } from "../frames/protocol-error.ts";

/** Headers of an answer, by their names in lower case. */
export type HttpHeaders = Readonly<Record<string, string | string[]>>;

/** A request over HTTP, whatever server has received it. */
export interface HttpRequest {
  readonly method: string;
  /** Without its query, which must not be logged, and without the path that a handler is mounted at. */
  readonly path: string;
  /** A header, by its name in lower case. */
  header(name: string): string | undefined;
  /**
   * Passes the body to `take`, piece by piece. Rejects with a `ProtocolError`: `too_large`, or
   * `invalid_request` where it broke off.
   */
  readBody(maxBytes: number, take: (piece: Uint8Array) => void): Promise<void>;
}

/** The answer to a request. What is called after its end does nothing. */
export interface HttpReply {
  /** Whether its head is set: no other can be. */
  readonly hasBegun: boolean;
  /** Whether it has ended, was cut off, or its reader has left. */
  readonly isOver: boolean;
  /** Whether its reader is slow: `onDrain` says when there is room. */
  readonly isFull: boolean;
  /** Adds headers to the head, whatever it will be. */
  addHeaders(headers: HttpHeaders): void;
  /** Sets the head, which is sent with the first piece. Without it, that has the status 200. */
  begin(status: number, headers?: HttpHeaders): void;
  /** Sends the head before there is a piece. */
  flush(): void;
  /** False: its reader is slow. */
  write(piece: string | Uint8Array): boolean;
  end(piece?: string | Uint8Array): void;
  /** Cuts it off: its reader gets an error in place of an end. */
  cut(): void;
  /** Called whenever there is room again. */
  onDrain(listener: () => void): void;
  /** Called once when it is over, however it ended. */
  onClose(listener: () => void): void;
}

/** The whole body of a request. Rejects as `readBody` of the request does. */
export async function collectBody(request: HttpRequest, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  await request.readBody(maxBytes, (piece) => {
    pieces.push(piece);
    length += piece.length;
  });
  const [first] = pieces;
  if (first && pieces.length === 1) return first;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** The body of a request has more than `maxBytes`. */
export function bodyTooLargeError(maxBytes: number): ProtocolError {
  return new ProtocolError("too_large", `A request has at most ${maxBytes} bytes.`);
}

/** Something else has taken the body: nothing is left to be read. */
export function bodyReadError(): ProtocolError {
  const what =
    "The body of this request was read before: mount the handler before whatever parses bodies.";
  return new ProtocolError("internal_error", what);
}
