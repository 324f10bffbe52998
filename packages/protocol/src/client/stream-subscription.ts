import type { Envelope, Payload } from "../frames/envelope.ts";
import { ProtocolError } from "../frames/protocol-error.ts";
import type { StreamListener } from "./client-api.ts";

/** A stream that skips numbers again and again, each time after it was taken up, is given up. */
const MAX_RESUMES_IN_VAIN = 3;

export interface StreamSubscriptionOptions {
  listener: StreamListener;
  /** The number of the last frame that is known. */
  last: number;
  /** Sends the request that takes the stream up; `resumed` or `lose` is called with its answer. */
  sendResume: (request: { type: string; payload: Payload }) => void;
  /** The stream is over; called once, before its listener is told. */
  onLost: () => void;
  /** A listener threw. */
  report: (error: unknown, where: string) => void;
}

/** The count of one stream's frames: what is next goes to the listener, once and in order. */
export class StreamSubscription {
  readonly #options: StreamSubscriptionOptions;
  #last: number;
  /** A request to take it up waits for its answer: what does not fit is on its way again. */
  #isResuming = false;
  /** It was taken up, and nothing came since: a snapshot may go back. */
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

  /** Nothing more is told. */
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

  /** There is a new connection. */
  onConnect(): void {
    this.#isResuming = false;
    this.#isFresh = false;
    this.#resumesInVain = 0;
    this.#resume();
  }

  /** The request to take it up was granted: what is missing comes next. */
  onResumed(): void {
    this.#isResuming = false;
    this.#isFresh = true;
  }

  /** It cannot be taken up. */
  end(error: ProtocolError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.onLost();
    this.#guard("lost", () => this.#options.listener.onLost(error));
  }

  #takeSnapshot(frame: Envelope): void {
    // A repeat of one that went to all who watch; one for us alone may go back.
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
