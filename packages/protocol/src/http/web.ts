import { invalidRequest } from "../frames/protocol-error.ts";
import {
  bodyReadError,
  bodyTooLargeError,
  type HttpHeaders,
  type HttpReply,
  type HttpRequest,
} from "./exchange.ts";
import type { HttpRouter } from "./router.ts";

/** How much of an answer waits for its reader before its writer has to wait, in bytes. */
const MAX_UNREAD_BYTES: number = 64 * 1024;

const OK = 200;
const NO_CONTENT = 204;
/** No client reads this answer. */
const CLIENT_CLOSED = 499;

const utf8 = new TextEncoder();

/** A request of a web runtime. */
export class WebRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly request: Request;
  readonly #url: URL;

  /** `findPath`: the path for the router, of the path of the URL. */
  constructor(request: Request, findPath: (path: string) => string = (path) => path) {
    this.request = request;
    this.method = request.method;
    this.#url = new URL(request.url);
    this.path = findPath(this.#url.pathname);
  }

  header(name: string): string | undefined {
    const value = this.request.headers.get(name);
    if (value !== null) return value;
    // A runtime may have it in the address alone.
    return name === "host" ? this.#url.host : undefined;
  }

  async readBody(maxBytes: number, take: (piece: Uint8Array) => void): Promise<void> {
    if (this.request.bodyUsed) throw bodyReadError();
    if (Number(this.header("content-length")) > maxBytes) throw bodyTooLargeError(maxBytes);
    const reader = this.request.body?.getReader();
    let length = 0;
    for (;;) {
      const part = await reader?.read().catch((cause: unknown) => {
        throw invalidRequest("The body broke off.", { cause });
      });
      if (!part || part.done) return;
      length += part.value.length;
      if (length > maxBytes) {
        void reader?.cancel();
        throw bodyTooLargeError(maxBytes);
      }
      take(part.value);
    }
  }
}

/** The answer of a router as a `Response`, whose body streams. */
export function answerRequest<R extends HttpRequest>(
  router: HttpRouter<R>,
  request: R & WebRequest,
): Promise<Response> {
  return new Promise((resolve) => {
    const reply = new WebReply(resolve, request.request.signal);
    void router.answer(request, reply).then(() => {
      if (!reply.hasBegun) resolve(new Response(null, { status: CLIENT_CLOSED }));
    });
  });
}

class WebReply implements HttpReply {
  hasBegun = false;
  isOver = false;
  readonly #resolve: (response: Response) => void;
  readonly #signal: AbortSignal;
  readonly #added: Record<string, string | string[]> = {};
  readonly #onDrain: (() => void)[] = [];
  readonly #onClose: (() => void)[] = [];
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(resolve: (response: Response) => void, signal: AbortSignal) {
    this.#resolve = resolve;
    this.#signal = signal;
    if (signal.aborted) this.isOver = true;
    else signal.addEventListener("abort", this.#leave, { once: true });
  }

  get isFull(): boolean {
    return (this.#controller?.desiredSize ?? 1) <= 0;
  }

  addHeaders(headers: HttpHeaders): void {
    Object.assign(this.#added, headers);
  }

  begin(status: number, headers: HttpHeaders = {}): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    if (this.isOver) return this.#resolve(new Response(null, { status: CLIENT_CLOSED }));
    const init = { status, headers: toHeaders({ ...this.#added, ...headers }) };
    if (status === NO_CONTENT) return this.#resolve(new Response(null, init));
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#controller = controller),
        pull: () => this.#onDrain.forEach((listener) => listener()),
        cancel: () => this.#leave(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: MAX_UNREAD_BYTES }),
    );
    this.#resolve(new Response(body, init));
  }

  flush(): void {}

  write(piece: string | Uint8Array): boolean {
    if (this.isOver) return true;
    if (!this.hasBegun) this.begin(OK);
    this.#controller?.enqueue(typeof piece === "string" ? utf8.encode(piece) : piece);
    return !this.isFull;
  }

  end(piece?: string | Uint8Array): void {
    if (this.isOver) return;
    if (!this.hasBegun) this.begin(OK);
    if (piece !== undefined && piece.length > 0) this.write(piece);
    this.#controller?.close();
    this.#leave();
  }

  cut(): void {
    if (this.isOver) return;
    if (this.hasBegun) this.#controller?.error(new Error("The response was cut off."));
    this.#leave();
  }

  onDrain(listener: () => void): void {
    this.#onDrain.push(listener);
  }

  onClose(listener: () => void): void {
    if (this.isOver) queueMicrotask(listener);
    else this.#onClose.push(listener);
  }

  readonly #leave = (): void => {
    if (this.isOver) return;
    this.isOver = true;
    this.#signal.removeEventListener("abort", this.#leave);
    for (const listener of this.#onClose) listener();
  };
}

function toHeaders(headers: HttpHeaders): Headers {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    // The connection is the runtime's own matter.
    if (name === "connection") continue;
    for (const each of [value].flat()) all.append(name, each);
  }
  return all;
}
