import type { Envelope, Payload } from "../frames/envelope.ts";
import { ProtocolError } from "../frames/protocol-error.ts";
import type { StreamListener } from "./client-api.ts";

/** A stream that still skips numbers after it was resumed this many times ends. */
const MAX_RESUMES_IN_VAIN = 3;

export interface StreamSubscriptionOptions {
  listener: StreamListener;
  /** The number of the last frame that is known. */
  last: number;
  /** Sends the request that resumes the stream; `onResumed` or `end` is called with its answer. */
  sendResume: (request: { type: string; payload: Payload }) => void;
  /** The stream is over; called once, before `onLost` of its listener. */
  onLost: () => void;
  /** A listener threw. */
  report: (error: unknown, where: string) => void;
}

/** Counts the frames of one stream: the listener gets each of them once and in order. */
export class StreamSubscription {
  readonly #options: StreamSubscriptionOptions;
  #last: number;
  /** A resume waits for its answer: missing frames are on their way again. */
  #isResuming = false;
  /** It was resumed, and no frame arrived since: a snapshot may have an older number. */
  #isFresh = false;
  #resumesInVain = 0;
  #isOver = false;

  constructor(options: StreamSubscriptionOptions) {
    this.#options = options;
    this.#last = options.last;
  }

  skipTo(last: number): void {
    this.#last = last;
  }

  /** Calls the listener no more. */
  stop(): void {
    this.#isOver = true;
  }

  take(frame: Envelope): void {
    const { type, seq } = frame;
    if (type === "snapshot") return this.#takeSnapshot(frame);
    // For this connection alone, and no part of the count.
    if (seq === undefined) return this.#deliver(frame);
    if (seq <= this.#last) return;
    if ((frame.from ?? seq) !== this.#last + 1) return this.#handleGap(frame);
    this.#accept(frame, seq);
  }

  /** Resumes the stream on a new connection. */
  onConnect(): void {
    this.#isResuming = false;
    this.#isFresh = false;
    this.#resumesInVain = 0;
    this.#resume();
  }

  /** The server granted the resume: missing frames come next. */
  onResumed(): void {
    this.#isResuming = false;
    this.#isFresh = true;
  }

  /** Ends the stream: it cannot be resumed. */
  end(error: ProtocolError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.onLost();
    this.#guard("lost", () => this.#options.listener.onLost(error));
  }

  #takeSnapshot(frame: Envelope): void {
    // A repeat of one that went to all clients; one for this client alone may have an older number.
    if (frame.seq !== undefined && frame.seq <= this.#last && !this.#isFresh) return;
    const seq = frame.seq ?? frame.payload["seq"];
    this.#accept(frame, typeof seq === "number" ? seq : this.#last);
  }

  #accept(frame: Envelope, seq: number): void {
    this.#last = seq;
    this.#isFresh = false;
    this.#resumesInVain = 0;
    this.#deliver(frame);
  }

  #handleGap({ from, seq }: Envelope): void {
    if (this.#isResuming) return;
    if (this.#resumesInVain++ < MAX_RESUMES_IN_VAIN) return this.#resume();
    const what = `The stream goes on with ${from ?? seq}, and ${this.#last + 1} was not sent again.`;
    this.end(new ProtocolError("invalid_sequence", what));
  }

  #resume(): void {
    const { listener, sendResume: ask } = this.#options;
    this.#guard("resume", () => {
      const request = this.#isOver ? undefined : listener.resume(this.#last);
      if (!request) return;
      this.#isResuming = true;
      ask(request);
    });
  }

  #deliver(frame: Envelope): void {
    if (this.#isOver) return;
    const { listener, report } = this.#options;
    try {
      listener.onFrame(frame);
    } catch (error) {
      report(error, "frame");
    }
  }

  #guard(where: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#options.report(error, where);
    }
  }
}
