import {
  type AssistantMessage,
  type AssistantMessageEvent,
  type AssistantMessageEventStream,
  type Clock,
  emptyAssistantMessage,
  errorMessage,
  type Failure,
  IncompleteStreamError,
  isDelta,
  isRecord,
  isTerminal,
  type Model,
  redact,
  listSecrets,
} from "@gyre/ai";
import { IdempotencyCache } from "../server/idempotency-cache.ts";
import { CompactEventWriter, type MessageHead, toMessageHead } from "@gyre/ai/stream";
import { measureUtf8 } from "../frames/envelope.ts";
import { EventLog, type LoggedEvent } from "../messages/event-log.ts";
import { invalidRequest } from "../frames/protocol-error.ts";

/** How long an aborted request may take to end by itself. */
export const ABORT_GRACE_MS = 1_000;

const NOW = Promise.resolve();

type TerminalEvent = Extract<AssistantMessageEvent, { type: "done" | "error" }>;

export interface ModelStreamOptions {
  clock: Clock;
  /** After this time without an event it ends with `timeout`. */
  idleMs: number;
  /** How long it continues without a reader, and how long it is kept after its end. */
  orphanTtlMs: number;
  tailEvents: number;
  tailBytes: number;
  /** Keeps the answer to the request that opened the stream. */
  answers?: IdempotencyCache;
  onEnd: (stream: ModelStream) => void;
  /** No client can resume it any more. */
  onForget: (stream: ModelStream) => void;
  onError: (error: unknown, where: string) => void;
}

/** Asks a model. The signal aborts the request. */
export type AskModel = (
  signal: AbortSignal,
) => AssistantMessageEventStream | Promise<AssistantMessageEventStream>;

/**
 * One response of a model, whose readers may come and go: its events have numbers, the newest are
 * kept, and a snapshot stands for the rest. It has exactly one end.
 */
export class ModelStream {
  readonly id: string;
  readonly answers: IdempotencyCache;
  /** The final message, also of a response that failed. Never rejects. */
  readonly result: Promise<AssistantMessage>;
  readonly #options: ModelStreamOptions;
  readonly #log: EventLog;
  readonly #control = new AbortController();
  readonly #readers = new Set<{ sink: (event: LoggedEvent) => void }>();
  readonly #settle: (message: AssistantMessage) => void;
  #model: Model | undefined;
  #secrets: readonly string[] = [];
  #source: AssistantMessageEventStream | undefined;
  #head: MessageHead | undefined;
  #writer: CompactEventWriter | undefined;
  #partial: AssistantMessage | undefined;
  #terminal: LoggedEvent | undefined;
  #lastEventAt = 0;
  #isForgotten = false;
  #stopIdle: () => void = () => {};
  #stopGrace: () => void = () => {};
  /** Stops the timer that aborts a stream without readers, or forgets an ended one. */
  #stopWait: () => void = () => {};

  constructor(id: string, options: ModelStreamOptions) {
    this.id = id;
    this.answers = options.answers ?? new IdempotencyCache();
    this.#options = options;
    this.#log = new EventLog(options.tailEvents, options.tailBytes);
    let settle: (message: AssistantMessage) => void = () => {};
    this.result = new Promise((resolve) => (settle = resolve));
    this.#settle = settle;
    this.#watchReaders();
  }

  get isEnded(): boolean {
    return this.#terminal !== undefined;
  }

  /** About how much memory it takes, in bytes. */
  get bytes(): number {
    return this.#log.bytes;
  }

  /** Asks the model, and reads its answer. Called once. No error repeats one of the `secrets`. */
  run(model: Model, ask: AskModel, secrets: readonly string[] = []): void {
    if (this.isEnded || this.#isForgotten) return;
    this.#model = model;
    this.#secrets = secrets;
    this.#lastEventAt = this.#options.clock.now();
    this.#watchSilence(this.#options.idleMs);
    this.#read(ask).catch((error: unknown) => {
      this.#options.onError(error, `the end of stream ${this.id}`);
    });
  }

  /**
   * Passes the events after `after` to `sink`, or a `snapshot` and the events after that: first the
   * kept ones, before this returns, then those that follow. The returned function detaches the
   * sink; the response goes on. Throws `invalid_request` for a number that there is not.
   */
  attach(after: number, sink: (event: LoggedEvent) => void): () => void {
    if (!Number.isSafeInteger(after) || after < 0 || after > this.#log.last) {
      const what = `"after" is the number of an event of the stream, at most ${this.#log.last}.`;
      throw invalidRequest(what);
    }
    for (const event of this.#log.readAfter(after) ?? this.#buildSnapshot()) sink(event);
    const reader = { sink };
    this.#readers.add(reader);
    this.#watchReaders();
    return () => {
      if (this.#readers.delete(reader)) this.#watchReaders();
    };
  }

  /** Cancels the request to the service. Calling it twice does no harm. */
  abort(): void {
    if (this.isEnded || this.#control.signal.aborted) return;
    this.#control.abort();
    this.#stopGrace = this.#options.clock.after(ABORT_GRACE_MS, () => {
      this.#fail("The request was aborted.", { kind: "aborted", retryable: false });
    });
  }

  /** Releases a stream that never ran, or that no client will resume. */
  forget(): void {
    if (this.#isForgotten) return;
    this.#isForgotten = true;
    this.#stopAll();
    this.#settle({ ...this.#createEmptyMessage(), stopReason: "aborted" });
    this.#options.onForget(this);
  }

  async #read(ask: AskModel): Promise<void> {
    try {
      const source = await ask(this.#control.signal);
      if (this.isEnded) return source.detach();
      this.#source = source;
      source.whenReadable(this.#wake);
    } catch (error) {
      this.#fail(errorMessage(error), readFailure(error));
    }
  }

  /** Reads each event in a turn of its own: the provider does not wait for readers. */
  readonly #wake = (): void => void NOW.then(this.#readNext);

  /** As `for await`, without a promise and its closures for each delta. */
  readonly #readNext = (): void => {
    const source = this.#source;
    if (!source || this.isEnded) return;
    const event = source.take();
    if (event) {
      try {
        this.#take(event);
      } catch (error) {
        return this.#fail(errorMessage(error), readFailure(error));
      }
    }
    if (this.isEnded) return;
    if (event || !source.closed) return source.whenReadable(this.#wake);
    const { failure } = source;
    if (failure) this.#fail(errorMessage(failure.error), readFailure(failure.error));
    else this.#fail("The response ended early.", { kind: "incomplete" });
  };

  #take(event: AssistantMessageEvent): void {
    this.#lastEventAt = this.#options.clock.now();
    if (isTerminal(event)) return this.#end(event);
    this.#partial = event.partial;
    const writer = this.#getWriter(event.partial);
    const wire = writer.write(event);
    if (isDelta(event)) {
      return this.#publish(this.#log.appendDelta(event.type, event.contentIndex, event.delta));
    }
    const { type, ...payload } = wire;
    const news = type === "start" ? { message: this.#head } : payload;
    this.#publish(this.#log.append(type, news));
  }

  #getWriter(message: AssistantMessage): CompactEventWriter {
    this.#head ??= toOpenHead(message);
    return (this.#writer ??= new CompactEventWriter(this.#head));
  }

  #fail(errorMessage: string, failure: Failure): void {
    if (this.isEnded || this.#isForgotten) return;
    // A provider that ignores the abort goes on changing its own partial message.
    const base = this.#partial ?? this.#createEmptyMessage();
    const reason = failure.kind === "aborted" ? "aborted" : "error";
    this.#end({
      type: "error",
      reason,
      error: { ...base, content: [...base.content], stopReason: reason, errorMessage, failure },
    });
    this.#control.abort();
  }

  #end(event: TerminalEvent): void {
    const safe = event.type === "error" ? { ...event, error: this.#redact(event.error) } : event;
    const message = safe.type === "error" ? safe.error : safe.message;
    const { type, ...payload } = this.#getWriter(message).write(safe);
    this.#stopAll();
    this.#terminal = this.#log.append(type, payload);
    this.#source?.detach();
    this.#publish(this.#terminal);
    this.#settle(message);
    this.#watchReaders();
    this.#options.onEnd(this);
  }

  #redact(message: AssistantMessage): AssistantMessage {
    const { errorMessage } = message;
    if (errorMessage === undefined) return message;
    const secrets = [...this.#secrets, ...(this.#model ? listSecrets(this.#model) : [])];
    return { ...message, errorMessage: redact(errorMessage, secrets) };
  }

  #publish(event: LoggedEvent): void {
    for (const { sink } of [...this.#readers]) {
      try {
        sink(event);
      } catch (error) {
        this.#options.onError(error, `an event of stream ${this.id}`);
      }
    }
  }

  /** A snapshot that stands for forgotten events, and the end if there is one. */
  #buildSnapshot(): LoggedEvent[] {
    const end = this.#terminal;
    const seq = end ? end.seq - 1 : this.#log.last;
    const events = this.#writer?.listEvents() ?? [];
    const payload = {
      seq,
      message: this.#head ?? toMessageHead(this.#createEmptyMessage()),
      events,
    };
    const bytes = measureUtf8(JSON.stringify(payload));
    const snapshot = { seq, type: "snapshot", payload, bytes };
    return end ? [snapshot, end] : [snapshot];
  }

  #createEmptyMessage(): AssistantMessage {
    const model = this.#model ?? { id: "", name: "", api: "", provider: "" };
    return emptyAssistantMessage(model, this.#options.clock.now());
  }

  /** Without readers the stream is aborted after a while; after its end it is forgotten. */
  #watchReaders(): void {
    this.#stopWait();
    if (this.#isForgotten || (!this.isEnded && this.#readers.size > 0)) return;
    const { clock, orphanTtlMs } = this.#options;
    this.#stopWait = clock.after(orphanTtlMs, () => (this.isEnded ? this.forget() : this.abort()));
  }

  /** Uses one timer for all events: it checks when the last one arrived. */
  #watchSilence(ms: number): void {
    const { clock, idleMs } = this.#options;
    this.#stopIdle = clock.after(ms, () => {
      const leftMs = this.#lastEventAt + idleMs - clock.now();
      if (leftMs > 0) return this.#watchSilence(leftMs);
      // A service that has begun may still be at work, and is paid for it.
      this.#fail(`The model's service sent no content for ${idleMs} ms.`, {
        kind: "timeout",
        retryable: this.#head === undefined,
      });
    });
  }

  #stopAll(): void {
    this.#stopIdle();
    this.#stopGrace();
    this.#stopWait();
  }
}

/** The head of a live message without its ending, which belongs to the last event. */
function toOpenHead(message: AssistantMessage): MessageHead {
  const { errorMessage: _, failure: __, ...head } = toMessageHead(message);
  return { ...head, stopReason: "stop" };
}

/** The failure of a thrown error, as the loop reads it. */
function readFailure(error: unknown): Failure {
  if (error instanceof IncompleteStreamError) return { kind: "incomplete" };
  const failure: unknown = error instanceof Error && "failure" in error ? error.failure : undefined;
  return isFailure(failure) ? failure : { kind: "hook", retryable: false };
}

function isFailure(value: unknown): value is Failure {
  return isRecord(value) && typeof value["kind"] === "string";
}
