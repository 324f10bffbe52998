import { type Clock, systemClock } from "@gyre/ai";
import { type Envelope, PROTOCOL_VERSION } from "../../frames/envelope.ts";
import { Inbox } from "./inbox.ts";
import { HELLO_TIMEOUT_MS } from "../../frames/limits.ts";
import type { Transport } from "./transport.ts";

export interface AuthorizeOptions {
  /** Whether this is the token. Takes as long for a wrong one as for the right one. */
  check: (token: string) => boolean;
  /** A client was rejected. */
  onRefused?: () => void;
  clock?: Clock;
  /** Default `HELLO_TIMEOUT_MS`. */
  timeoutMs?: number;
}

/**
 * For transports without headers: waits for `hello` with the right `token`, and then calls `serve`
 * with a transport that begins with that frame, without the token. Any other frame, or silence, gets
 * `nack unauthorized` and the end; `serve` is not called.
 */
export function authorize(
  transport: Transport,
  serve: (transport: Transport) => void,
  options: AuthorizeOptions,
): void {
  const { check, onRefused, clock = systemClock, timeoutMs = HELLO_TIMEOUT_MS } = options;
  const inbox = new Inbox();
  let stage: "waiting" | "known" | "refused" = "waiting";
  const refuse = (re?: string): void => {
    if (stage !== "waiting") return;
    stage = "refused";
    stopTimer();
    onRefused?.();
    void transport.send(createUnauthorized(clock.now(), re));
    void transport.close();
  };
  const stopTimer = clock.after(timeoutMs, refuse);
  transport.receive({
    onFrame(envelope) {
      if (stage === "known") return inbox.onFrame(envelope);
      const { token, ...payload } = envelope.payload;
      const isKnown = envelope.type === "hello" && typeof token === "string" && check(token);
      if (stage !== "waiting" || !isKnown) return refuse(envelope.id);
      stage = "known";
      stopTimer();
      inbox.onFrame({ ...envelope, payload });
      serve({
        send: (frame) => transport.send(frame),
        receive: (handler) => inbox.open(handler),
        close: () => transport.close(),
      });
    },
    onFault(error) {
      if (stage === "known") inbox.onFault(error);
      else refuse(error.re);
    },
    onClose(error) {
      stopTimer();
      if (stage === "waiting") stage = "refused";
      inbox.onClose(error);
    },
  });
}

/** The client's end of `authorize`: adds the token to `hello`. */
export function withToken(transport: Transport, token: string): Transport {
  return {
    send: (envelope) =>
      transport.send(
        envelope.type === "hello"
          ? { ...envelope, payload: { ...envelope.payload, token } }
          : envelope,
      ),
    receive: (handler) => transport.receive(handler),
    close: () => transport.close(),
  };
}

function createUnauthorized(ts: number, re?: string): Envelope {
  return {
    v: PROTOCOL_VERSION,
    type: "nack",
    id: "r_0",
    ts,
    ...(re !== undefined && { re }),
    payload: {
      code: "unauthorized",
      message: 'The first frame is "hello" with the "token" of this server.',
    },
  };
}
