import { Transform } from "node:stream";
import { type ManualClock, manualClock } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { openHttp } from "../http.ts";
import { EVENTS_AWAY_MS } from "../../frames/limits.ts";
import { listenHttp } from "../../node/http/server.ts";
import { tcp } from "../../node/tcp.ts";
import { connectWebSocket } from "../../node/websocket-client.ts";
import { openStdio } from "../../node/stdio.ts";
import { openSocketRelay } from "../../testing/socket-relay.ts";
import {
  transportChecks,
  type TransportEnds,
  type TransportTraits,
} from "../../testing/transport-checks.ts";
import { openUrlTransportEnds } from "../../testing/url-transport-ends.ts";
import { type Transport, createTransportPair } from "./transport.ts";
import { openWebSocket } from "../websocket.ts";

const TOKEN = "t".repeat(32);

function suite(name: string, traits: TransportTraits): void {
  describe(`one interface for every transport: ${name}`, () => {
    const checks = transportChecks(traits).map(({ title, run }) => [title, run] as const);
    it.each(checks)("%s", async (_, run) => {
      await expect(run()).resolves.toBeUndefined();
    });
  });
}

/** A promise, and what settles it. */
function later<T>(): { promise: Promise<T>; settle: (value: T) => void } {
  let settle: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => (settle = resolve));
  return { promise, settle };
}

suite("in process", {
  lacks: ["limit", "inject", "cut", "stall"],
  open: async () => {
    const [one, other] = createTransportPair();
    return { one, other };
  },
});

/** A pipe that can be held up. */
class Pipe extends Transform {
  #isStalled = false;
  #goOn: (() => void) | undefined;

  override _transform(
    chunk: Buffer,
    _encoding: string,
    done: (error: null, chunk: Buffer) => void,
  ) {
    const pass = (): void => done(null, chunk);
    if (this.#isStalled) this.#goOn = pass;
    else pass();
  }

  stall(isStalled: boolean): void {
    this.#isStalled = isStalled;
    if (isStalled) return;
    this.#goOn?.();
    this.#goOn = undefined;
  }
}

suite("stdio", {
  open: async (maxFrameBytes) => {
    const there = new Pipe();
    const back = new Pipe();
    const one = openStdio({ input: back, output: there, maxFrameBytes });
    const other = openStdio({ input: there, output: back, maxFrameBytes });
    // A process that has said its last ends its output; the transport leaves that to it.
    const ending = (transport: Transport, output: Transform): Transport => ({
      send: (envelope) => transport.send(envelope),
      receive: (handler) => transport.receive(handler),
      close: async () => {
        await transport.close();
        output.end();
      },
    });
    return {
      one: ending(one, there),
      other: ending(other, back),
      inject: (text) => void there.write(`${text}\n`),
      cut: () => {
        there.destroy();
        back.destroy();
      },
      stall: (isStalled) => {
        there.stall(isStalled);
        back.stall(isStalled);
      },
    };
  },
});

suite("TCP", {
  open: (maxFrameBytes) =>
    openUrlTransportEnds({ transport: tcp, url: "tcp://127.0.0.1:0", maxFrameBytes }),
});

type Connect = (
  port: number,
  maxFrameBytes: number,
) => Promise<Pick<TransportEnds, "one" | "inject">>;

function overHttp(connect: Connect): (maxFrameBytes: number) => Promise<TransportEnds> {
  return async (maxFrameBytes) => {
    const clock: ManualClock = manualClock();
    const served = later<Transport>();
    const serve = served.settle;
    const relay = await openSocketRelay();
    const hosts = [`127.0.0.1:${relay.port}`];
    const listener = await listenHttp({ token: TOKEN, serve, hosts, maxFrameBytes, clock });
    relay.to({ port: listener.port });
    const near = await connect(relay.port, maxFrameBytes);
    return {
      ...near,
      other: await served.promise,
      cut: async () => {
        relay.cut();
        await clock.advance(EVENTS_AWAY_MS);
      },
      stall: (isStalled) => relay.stall(isStalled),
      end: async () => {
        await relay.close();
        await listener.close();
      },
    };
  };
}

suite("WebSocket, from Node", {
  lacks: ["inject"],
  open: overHttp(async (port, maxFrameBytes) => ({
    one: await connectWebSocket(`ws://127.0.0.1:${port}/api/ws`, { token: TOKEN, maxFrameBytes }),
  })),
});

suite("WebSocket, as browsers have it", {
  endsAtTooLarge: true,
  open: overHttp(async (port, maxFrameBytes) => {
    const made: WebSocket[] = [];
    class Noted extends WebSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols);
        made.push(this);
      }
    }
    const one = await openWebSocket(`ws://127.0.0.1:${port}/api/ws`, {
      token: TOKEN,
      WebSocket: Noted,
      maxFrameBytes,
    });
    return { one, inject: (text) => made[0]?.send(text) };
  }),
});

suite("HTTP with server-sent events", {
  open: overHttp(async (port, maxFrameBytes) => {
    const url = `http://127.0.0.1:${port}`;
    let path = "";
    const noting: typeof fetch = async (input, init) => {
      if (typeof input === "string" && input.endsWith("events")) {
        path = input.replace(/events$/, "frames");
      }
      return fetch(input, init);
    };
    const one = await openHttp(url, { token: TOKEN, fetch: noting, maxFrameBytes });
    const inject = async (body: string): Promise<void> => {
      await fetch(path, { method: "POST", body, headers: { authorization: `Bearer ${TOKEN}` } });
    };
    return { one, inject };
  }),
});
