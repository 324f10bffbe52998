import type { IncomingMessage, ServerResponse } from "node:http";
import { invalidRequest } from "../../frames/protocol-error.ts";
import {
  bodyReadError,
  bodyTooLargeError,
  type HttpHeaders,
  type HttpReply,
  type HttpRequest,
} from "../../http/exchange.ts";

const OK = 200;

/** A request of `node:http`. */
export class NodeRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly message: IncomingMessage;

  /** `findPath`: the path for the router, of the path of the request. */
  constructor(message: IncomingMessage, findPath: (path: string) => string = (path) => path) {
    const { method = "", url = "/" } = message;
    this.message = message;
    this.method = method;
    this.path = findPath(url.split("?", 1)[0] ?? "/");
  }

  header(name: string): string | undefined {
    const value = this.message.headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  readBody(maxBytes: number, take: (piece: Uint8Array) => void): Promise<void> {
    const { message } = this;
    if (message.readableEnded) return Promise.reject(bodyReadError());
    return new Promise((resolve, reject) => {
      let bytes = 0;
      const refuse = (): void => reject(bodyTooLargeError(maxBytes));
      message.on("data", (piece: Buffer) => {
        bytes += piece.length;
        if (bytes <= maxBytes) take(piece);
        else refuse();
        // Reads on and drops the rest, up to a limit, so that a reset does not lose the answer.
        if (bytes > 2 * maxBytes) message.destroy();
      });
      message.on("end", resolve);
      const breakOff = (cause?: Error): void =>
        reject(invalidRequest("The body broke off.", { cause }));
      message.on("error", breakOff);
      message.on("close", () => breakOff());
      if (Number(message.headers["content-length"]) > maxBytes) refuse();
    });
  }
}

/** An answer that is written straight to the socket of `node:http`. */
export class NodeReply implements HttpReply {
  readonly #response: ServerResponse;
  #isClosed = false;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.once("close", () => (this.#isClosed = true));
    // A reader that leaves ends the answer: `close` follows.
    response.on("error", () => response.destroy());
  }

  get hasBegun(): boolean {
    return this.#response.headersSent;
  }

  get isOver(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  get isFull(): boolean {
    return this.#response.writableNeedDrain;
  }

  addHeaders(headers: HttpHeaders): void {
    for (const [name, value] of Object.entries(headers)) this.#response.setHeader(name, value);
  }

  begin(status: number, headers: HttpHeaders = {}): void {
    if (this.hasBegun || this.isOver) return;
    this.#response.writeHead(status, headers);
  }

  flush(): void {
    if (!this.isOver) this.#response.flushHeaders();
  }

  write(piece: string | Uint8Array): boolean {
    if (!this.hasBegun) this.begin(OK);
    return this.isOver || this.#response.write(piece);
  }

  end(piece?: string | Uint8Array): void {
    this.#response.end(piece);
  }

  cut(): void {
    this.#response.destroy();
  }

  onDrain(listener: () => void): void {
    this.#response.on("drain", listener);
  }

  onClose(listener: () => void): void {
    // A client may leave while it is found out who it is.
    if (this.#isClosed) queueMicrotask(listener);
    else this.#response.once("close", listener);
  }
}
