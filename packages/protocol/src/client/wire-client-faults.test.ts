import { type ManualClock, manualClock } from "@gyre/ai/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IdempotencyCache } from "../server/idempotency-cache.ts";
import type { Connection } from "../server/connection.ts";
import type { Envelope, Payload } from "../frames/envelope.ts";
import { WireServer, type WireService } from "../server/service.ts";
import {
  type Transport,
  type TransportHandler,
  createTransportPair,
} from "../transports/base/transport.ts";
import { WireClient } from "./wire-client.ts";

const STREAM = "s";
const DELTAS_A_REQUEST = 3;
/** Far more than the longest row of cuts needs, in steps of a second. */
const MAX_STEPS = 500;

/** A transport that breaks at its n-th frame, whichever way that goes. */
class BreakingTransport implements Transport {
  readonly #inner: Transport;
  #left: number;
  #handler: TransportHandler | undefined;
  #isClosed = false;

  constructor(inner: Transport, frames: number) {
    this.#inner = inner;
    this.#left = frames;
  }

  send(frame: Envelope): void | Promise<void> {
    if (this.#goesOn()) return this.#inner.send(frame);
  }

  receive(handler: TransportHandler): void {
    this.#handler = handler;
    this.#inner.receive({
      onFrame: (frame) => {
        if (this.#goesOn()) handler.onFrame(frame);
      },
      onFault: (error) => handler.onFault(error),
      onClose: (error) => this.#end(error),
    });
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #goesOn(): boolean {
    if (!this.#isClosed && this.#left-- <= 0) this.#end(new Error("cut"));
    return !this.#isClosed;
  }

  #end(error?: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    void this.#inner.close();
    this.#handler?.onClose(error);
  }
}

/** The other end takes its time with every frame, so that deltas wait and are joined. */
function slowed(inner: Transport, clock: ManualClock): Transport {
  return {
    send: (frame) => {
      void inner.send(frame);
      return clock.turn();
    },
    receive: (handler) => inner.receive(handler),
    close: () => inner.close(),
  };
}

/** Each `write` puts three deltas on the stream; `resume` sends what is missing of them. */
class Scribe implements WireService {
  readonly runs = new Map<string, number>();
  readonly deltas: string[] = [];
  readonly #watchers = new Set<Connection>();
  readonly #memory = new IdempotencyCache();
  readonly #tail: number;

  constructor(tail: number) {
    this.#tail = tail;
  }

  connect(connection: () => Connection): ReturnType<WireService["connect"]> {
    return {
      handlers: new Map([
        ["write", (frame: Envelope) => this.#write(frame)],
        [
          "resume",
          ({ payload }: Envelope, ack: () => void) => {
            ack();
            this.#resume(connection(), Number(payload["after"]));
          },
        ],
      ]),
      findCache: ({ type }) => (type === "write" ? this.#memory : undefined),
      onClose: () => void this.#watchers.delete(connection()),
    };
  }

  async close(): Promise<void> {}

  async #write({ id, payload }: Envelope): Promise<Payload> {
    this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
    for (let at = 0; at < DELTAS_A_REQUEST; at++) {
      // Other frames come in between.
      await Promise.resolve();
      const seq = this.deltas.push(`${id}.${at} `);
      for (const connection of this.#watchers) this.#send(connection, seq);
    }
    return payload;
  }

  #resume(connection: Connection, after: number): void {
    this.#watchers.add(connection);
    const seq = this.deltas.length;
    if (after >= seq - this.#tail) {
      for (let next = after + 1; next <= seq; next++) this.#send(connection, next);
      return;
    }
    const text = this.deltas.join("");
    connection.send({ type: "snapshot", stream: STREAM, seq, payload: { text } });
  }

  #send(connection: Connection, seq: number): void {
    const payload = { contentIndex: 0, delta: this.deltas[seq - 1] ?? "" };
    connection.send({ type: "text_delta", stream: STREAM, seq, payload });
  }
}

interface Outcome {
  scribe: Scribe;
  answers: Payload[];
  text: string;
  /** First and last number of each frame that was delivered, `snapshot` where it was one. */
  places: (readonly [number, number, string])[];
  connections: number;
}

async function run(cuts: readonly number[], writes: number, options: RunOptions): Promise<Outcome> {
  const clock = manualClock();
  const scribe = new Scribe(options.tail);
  const server = new WireServer([scribe], { clock });
  const places: Outcome["places"] = [];
  let [text, connections] = ["", 0];
  const client = new WireClient({
    connect: async () => {
      const [near, far] = createTransportPair();
      server.serve(options.isSlow ? slowed(far, clock) : far);
      return new BreakingTransport(near, cuts[connections++] ?? Infinity);
    },
    clock,
    random: () => 0.5,
  });
  client.listen(STREAM, {
    onFrame({ type, from, seq = 0, payload }) {
      places.push([from ?? seq, seq, type]);
      text = type === "snapshot" ? String(payload["text"]) : text + String(payload["delta"]);
    },
    resume: (after) => ({ type: "resume", payload: { after } }),
    onLost: (error) => expect.fail(error.message),
  });
  let answers: Payload[] | undefined;
  const all = Array.from({ length: writes }, (_, n) =>
    // Some belong to the stream and keep its order, others come as they like.
    client.request("write", { n }, n % 3 === 0 ? {} : { stream: STREAM }),
  );
  void Promise.all(all).then((given) => (answers = given));
  const isDone = (): boolean =>
    answers !== undefined && (places.at(-1)?.[1] ?? 0) === writes * DELTAS_A_REQUEST;
  for (let step = 0; step < MAX_STEPS && !isDone(); step++) await clock.advance(1000);
  // What would come twice comes now.
  await clock.advance(1000);
  await client.close();
  return { scribe, answers: answers ?? [], text, places, connections };
}

interface RunOptions {
  isSlow: boolean;
  tail: number;
}

const cutPlaces = fc.array(fc.nat({ max: 25 }), { maxLength: 12 });
const writeCount = fc.integer({ min: 1, max: 8 });

describe("resume: nothing is lost or doubled, however often the connection breaks", () => {
  it("does every request once, and answers it", async () => {
    await fc.assert(
      fc.asyncProperty(cutPlaces, writeCount, fc.boolean(), async (cuts, writes, isSlow) => {
        const { scribe, answers } = await run(cuts, writes, { isSlow, tail: Infinity });
        expect(answers).toEqual(Array.from({ length: writes }, (_, n) => ({ n })));
        expect([...scribe.runs.values()]).toEqual(Array.from({ length: writes }, () => 1));
      }),
    );
  });

  it("delivers a stream from 1 to n without a gap or a repeat", async () => {
    await fc.assert(
      fc.asyncProperty(cutPlaces, writeCount, fc.boolean(), async (cuts, writes, isSlow) => {
        const { scribe, text, places } = await run(cuts, writes, { isSlow, tail: Infinity });
        let last = 0;
        for (const [from, seq] of places) {
          expect(from).toBe(last + 1);
          last = seq;
        }
        expect(last).toBe(writes * DELTAS_A_REQUEST);
        expect(text).toBe(scribe.deltas.join(""));
      }),
    );
  });

  it("snapshot when the tail is gone, and then what follows", async () => {
    await fc.assert(
      fc.asyncProperty(cutPlaces, writeCount, fc.nat({ max: 3 }), async (cuts, writes, tail) => {
        const { scribe, text, places } = await run(cuts, writes, { isSlow: true, tail });
        let last = 0;
        for (const [from, seq, type] of places) {
          if (type === "snapshot") expect(seq).toBeGreaterThan(last);
          else expect(from).toBe(last + 1);
          last = seq;
        }
        expect(text).toBe(scribe.deltas.join(""));
      }),
    );
  });

  it("deltas that were joined for a slow reader travel as one", async () => {
    const { places, text, scribe } = await run([9, 9], 8, { isSlow: true, tail: Infinity });
    expect(places.some(([from, seq]) => from < seq)).toBe(true);
    expect(text).toBe(scribe.deltas.join(""));
  });

  it("comes back as often as it has to", async () => {
    const cuts = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    const { connections, answers } = await run(cuts, 4, { isSlow: false, tail: Infinity });
    expect(connections).toBeGreaterThan(5);
    expect(answers).toHaveLength(4);
  });
});
