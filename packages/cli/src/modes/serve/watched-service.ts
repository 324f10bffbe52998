import {
  type Connection,
  type RequestHandler,
  type ServedConnection,
  stoppingError,
  type WireService,
} from "@gyre/protocol";

/** Requests that begin something, which a server that is about to stop does not. */
const BEGINNINGS: ReadonlySet<string> = new Set([
  "session_create",
  "session_request",
  "prompt",
  "continue",
  "approve",
  "stream_request",
  "complete_request",
]);

export interface WatchedOptions {
  /** Whether nothing new is begun any more. */
  isStopping: () => boolean;
  /** A request was refused, or failed. */
  onRefused: (type: string, error: unknown) => void;
}

/** A service whose refusals are logged, and which begins nothing when the server is to stop. */
export class WatchedService implements WireService {
  readonly #service: WireService;
  readonly #options: WatchedOptions;

  constructor(service: WireService, options: WatchedOptions) {
    this.#service = service;
    this.#options = options;
  }

  connect(connection: () => Connection): ServedConnection {
    const served = this.#service.connect(connection);
    const handlers = new Map<string, RequestHandler>();
    for (const [type, handler] of served.handlers) handlers.set(type, this.#watch(type, handler));
    return { ...served, handlers };
  }

  close(): Promise<void> {
    return this.#service.close();
  }

  #watch(type: string, handler: RequestHandler): RequestHandler {
    const { isStopping, onRefused } = this.#options;
    const failed = (error: unknown): never => {
      onRefused(type, error);
      throw error;
    };
    // What is answered at once stays so: the order of answers hangs on it.
    return (frame, ack) => {
      try {
        if (isStopping() && BEGINNINGS.has(type)) throw stoppingError();
        const answer = handler(frame, ack);
        return answer instanceof Promise ? answer.catch(failed) : answer;
      } catch (error) {
        return failed(error);
      }
    };
  }
}
