import {
  AssistantMessageEventStream,
  type Clock,
  errorMessage,
  type Failure,
  type Model,
  systemClock,
} from "@gyre/ai";
import type { Envelope, Payload } from "../frames/envelope.ts";
import { toFailure } from "../frames/failure-kind.ts";
import { ProtocolError } from "../frames/protocol-error.ts";
import { MessageAssembler } from "../messages/message-assembler.ts";
import { makeStreamName } from "../frames/stream-name.ts";
import type { StreamListener, WireClientApi } from "../client/client-api.ts";

/** How long a server may take to end an aborted stream. */
const ABORT_ANSWER_MS = 2_000;
const ABORTED: Failure = { kind: "aborted", retryable: false };

export interface RemoteResponseOptions {
  client: WireClientApi;
  model: Model;
  /** The payload of `stream_request`. */
  request: Payload;
  /** Why the request is not sent: the response ends with it. */
  refusal?: string;
  signal?: AbortSignal;
  clock?: Clock;
  /** Called when the response has ended. */
  onEnd?: () => void;
}

/** One response that a server streams, over as many connections as it takes. */
export class RemoteResponse implements StreamListener {
  readonly events: AssistantMessageEventStream = new AssistantMessageEventStream();
  readonly #options: RemoteResponseOptions;
  readonly #clock: Clock;
  readonly #id = makeStreamName();
  readonly #message: MessageAssembler;
  /** The request was sent on a connection. */
  #isSent = false;
  #isGranted = false;
  /** The request was sent on an earlier connection as well: either one may have the events. */
  #isResent = false;
  #stopGrace: () => void = () => {};
  #unlisten: () => void = () => {};

  constructor(options: RemoteResponseOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#message = new MessageAssembler(this.events, options.model, () => this.#clock.now());
  }

  /** Sends the request. Called once. */
  start(): void {
    const { client: peer, request, refusal, signal } = this.#options;
    if (refusal !== undefined) return this.#fail(refusal, { kind: "auth", retryable: false });
    if (signal?.aborted) return this.#fail("The request was aborted.", ABORTED);
    signal?.addEventListener("abort", this.#abort, { once: true });
    this.#isSent = peer.state.type === "ready";
    try {
      this.#unlisten = peer.listen(this.#id, this);
    } catch (error) {
      return this.#onRefused(error);
    }
    peer.request("stream_request", request, { stream: this.#id }).then(
      () => this.#onGranted(),
      (error: unknown) => this.#onRefused(error),
    );
  }

  onFrame({ type, payload, seq, from }: Envelope): void {
    if (this.events.closed) return;
    try {
      if (payload["omitted"] === true) {
        throw new ProtocolError("too_large", `"${type}" could not be sent.`);
      }
      // A snapshot has its number in its payload.
      const number = seq ?? payload["seq"];
      if (!this.#message.takeNumbered(type, payload, number, from)) {
        throw new ProtocolError("invalid_sequence", `"${type}" came too early.`);
      }
      if (this.events.closed) this.#cleanUp();
    } catch (error) {
      this.leave(errorMessage(error), { kind: "network", retryable: true });
    }
  }

  resume(last: number): { type: string; payload: Payload } | undefined {
    if (this.#isGranted) return { type: "resume", payload: { after: last } };
    // There may be nothing to resume: the client sends the request itself again first.
    this.#isResent = this.#isSent;
    this.#isSent = true;
    return undefined;
  }

  onLost(error: ProtocolError): void {
    this.#fail(error.message, { kind: "network", retryable: true });
  }

  /** Aborts the response at the server, and ends it here with its partial message. */
  leave(errorMessage: string, failure: Failure): void {
    if (this.events.closed) return;
    this.#askToAbort();
    this.#fail(errorMessage, failure);
  }

  #onGranted(): void {
    this.#isGranted = true;
    if (!this.#isResent || this.events.closed) return;
    const payload = { stream: this.#id, after: this.#message.last };
    this.#options.client.request("resume", payload).catch((error: unknown) => {
      this.#fail(errorMessage(error), { kind: "network", retryable: true });
    });
  }

  #onRefused(error: unknown): void {
    const failure: Failure =
      error instanceof ProtocolError ? toFailure(error) : { kind: "network", retryable: true };
    this.#fail(errorMessage(error), failure);
  }

  readonly #abort = (): void => {
    this.#askToAbort();
    const end = (): void => this.#fail("The request was aborted.", ABORTED);
    // The end that the server sends has the usage so far. Without a connection it cannot arrive.
    if (this.#options.client.state.type !== "ready") end();
    else this.#stopGrace = this.#clock.after(ABORT_ANSWER_MS, end);
  };

  /** Without a connection the request waits for the next one. */
  #askToAbort(): void {
    this.#options.client.request("abort_request", { stream: this.#id }).catch(() => {
      // The stream ends at both ends without its answer.
    });
  }

  #fail(errorMessage: string, failure: Failure): void {
    this.#message.fail(errorMessage, failure);
    this.#cleanUp();
  }

  #cleanUp(): void {
    this.#stopGrace();
    this.#unlisten();
    this.#options.signal?.removeEventListener("abort", this.#abort);
    this.#options.onEnd?.();
  }
}
