import { type ManualClock, manualClock } from "@gyre/ai/testing";
import type { Envelope, Payload } from "../frames/envelope.ts";
import { type Transport, createTransportPair } from "../transports/base/transport.ts";
import { WireClient, type WireClientOptions } from "../client/wire-client.ts";
import type { StreamListener } from "../client/client-api.ts";

export interface PlayedServer {
  client: WireClient;
  clock: ManualClock;
  /** What came from the client, on all connections. */
  got: Envelope[];
  /** How many connections were asked for. */
  attempts: () => number;
  /** Says something on the newest connection, and lets it arrive. */
  say: (frame: Partial<Envelope> & { type: string }) => Promise<void>;
  hangUp: () => Promise<void>;
}

/** A client, and a server that is played by hand: what it gets is kept, what it says is said. */
export function played(options: Partial<WireClientOptions> = {}): PlayedServer {
  const clock = manualClock();
  const got: Envelope[] = [];
  let [far, attempts, made]: [Transport | undefined, number, number] = [undefined, 0, 0];
  const client = new WireClient({
    connect: async () => {
      attempts++;
      const [near, other] = createTransportPair();
      far = other;
      far.receive({ onFrame: (frame) => got.push(frame), onFault: () => {}, onClose: () => {} });
      return near;
    },
    clock,
    random: () => 1,
    ...options,
  });
  return {
    client,
    clock,
    got,
    attempts: () => attempts,
    async say(frame) {
      await clock.advance(0);
      void far?.send({ v: 1, id: `r_${++made}`, payload: {}, ...frame });
      await clock.advance(0);
    },
    async hangUp() {
      await far?.close();
      await clock.advance(0);
    },
  };
}

export const READY: { type: string; payload: Payload } = {
  type: "ready",
  payload: { version: 1, server: {}, limits: {} },
};

/** A listener that records its calls. */
export interface Followed extends StreamListener {
  seqs: (number | undefined)[];
  resumes: number[];
  lostWith: string[];
}

export function follower(resume?: StreamListener["resume"]): Followed {
  const [seqs, resumes, lostWith]: [(number | undefined)[], number[], string[]] = [[], [], []];
  return {
    seqs,
    resumes,
    lostWith,
    onFrame: ({ seq }) => seqs.push(seq),
    resume(last) {
      resumes.push(last);
      return resume ? resume(last) : { type: "resume", payload: { after: last } };
    },
    onLost: ({ code }) => lostWith.push(code),
  };
}

export const ofType = (frames: readonly Envelope[], type: string): Envelope[] =>
  frames.filter((frame) => frame.type === type);
