import { describe, expect, it, vi } from "vitest";
import { WireServer } from "../server/service.ts";
import { follower, ofType, played, type PlayedServer, READY } from "../testing/played-server.ts";
import { served } from "../testing/served-client.ts";
import { createTransportPair } from "../transports/base/transport.ts";
import type { StreamListener } from "./client-api.ts";

interface OpenStream extends PlayedServer {
  event: (seq: number, more?: object) => Promise<void>;
}

describe("streams: from = last + 1", () => {
  const open = async (listener: StreamListener, last?: number): Promise<OpenStream> => {
    const end = played();
    void end.client.connect();
    await end.say(READY);
    end.client.listen("s", listener, last);
    const event = (seq: number, more: object = {}): Promise<void> =>
      end.say({ type: "text_delta", stream: "s", seq, ...more });
    return { ...end, event };
  };

  it("gives what is next to the listener, and drops repeats", async () => {
    const listener = follower();
    const { event } = await open(listener);
    for (const seq of [1, 2, 2, 1, 3]) await event(seq);
    expect(listener.seqs).toEqual([1, 2, 3]);
    expect(listener.resumes).toEqual([]);
  });

  it("goes on after the last that is known", async () => {
    const listener = follower();
    const { event } = await open(listener, 4);
    for (const seq of [4, 5, 6]) await event(seq);
    expect(listener.seqs).toEqual([5, 6]);
  });

  it("takes joined frames as one", async () => {
    const listener = follower();
    const { event } = await open(listener);
    await event(1);
    await event(5, { from: 2 });
    await event(6);
    expect(listener.seqs).toEqual([1, 5, 6]);
  });

  it("resume: a gap asks once for what is missing", async () => {
    const listener = follower();
    const { event, got, say } = await open(listener);
    for (const seq of [1, 3, 4]) await event(seq);
    const asked = ofType(got, "resume");
    expect(asked).toMatchObject([{ stream: "s", seq: 1, payload: { after: 1 } }]);
    await say({ type: "ack", stream: "s", re: asked[0]?.id ?? "" });
    for (const seq of [2, 3, 4, 5]) await event(seq);
    expect(listener.seqs).toEqual([1, 2, 3, 4, 5]);
    expect(listener.resumes).toEqual([1]);
  });

  it("resume: a joined frame that begins too early is a gap as well", async () => {
    const listener = follower();
    const { event } = await open(listener, 3);
    await event(5, { from: 2 });
    expect([listener.seqs, listener.resumes]).toEqual([[], [3]]);
  });

  it("resume: a stream that skips numbers again and again fails", async () => {
    const listener = follower();
    const { event, got, say } = await open(listener);
    for (let at = 0; at < 4; at++) {
      await event(9);
      await say({ type: "ack", re: got.at(-1)?.id ?? "" });
    }
    expect(listener.resumes).toEqual([0, 0, 0]);
    expect(listener.lostWith).toEqual(["invalid_sequence"]);
  });

  it("snapshot: stands for all before it", async () => {
    const listener = follower();
    const { event, say } = await open(listener);
    await event(1);
    await say({ type: "snapshot", stream: "s", seq: 40 });
    await event(41);
    expect([listener.seqs, listener.resumes]).toEqual([[1, 40, 41], []]);
  });

  it("snapshot: has its number in the payload where it is for one client alone", async () => {
    const listener = follower();
    const { event, say } = await open(listener, 90);
    await say({ type: "snapshot", stream: "s", payload: { seq: 7 } });
    await event(8);
    expect(listener.seqs).toEqual([undefined, 8]);
  });

  it("snapshot: one that was taken already is a repeat", async () => {
    const listener = follower();
    const { event, say } = await open(listener);
    await say({ type: "snapshot", stream: "s", seq: 4 });
    await event(5);
    await say({ type: "snapshot", stream: "s", seq: 4 });
    await event(6);
    expect(listener.seqs).toEqual([4, 5, 6]);
  });

  it("snapshot: goes back where a resume is answered with it", async () => {
    const listener = follower();
    const { event, got, say } = await open(listener, 10);
    await event(12);
    await say({ type: "ack", re: got.at(-1)?.id ?? "" });
    await say({ type: "snapshot", stream: "s", seq: 2 });
    await event(3);
    expect(listener.seqs).toEqual([2, 3]);
  });

  it("skipTo: goes on after what the listener says", async () => {
    const listener = follower();
    const { client, event } = await open(listener);
    client.skipTo("s", 20);
    await event(21);
    expect(listener.seqs).toEqual([21]);
  });

  it("a frame without a number is for this connection alone", async () => {
    const listener = follower();
    const { event, say } = await open(listener);
    await event(1);
    await say({ type: "tool_execute", stream: "s" });
    await event(2);
    expect(listener.seqs).toEqual([1, undefined, 2]);
  });

  it("a numbered error is the end of a stream, and answers no request", async () => {
    const listener = follower();
    const { client, got, say } = await open(listener);
    const waiting = client.request("stream_request", {}, { stream: "s" });
    await say({ type: "ping" });
    const re = ofType(got, "stream_request")[0]?.id ?? "";
    await say({ type: "error", stream: "s", seq: 1, re, payload: { kind: "network" } });
    await say({ type: "ack", re, payload: { ok: true } });
    expect(await waiting).toEqual({ ok: true });
    expect(listener.seqs).toEqual([1]);
  });

  it("ignores a stream without a listener, or one whose listener is gone", async () => {
    const listener = follower();
    const { client, event, say } = await open(follower());
    const stop = client.listen("t", listener);
    await say({ type: "text_delta", stream: "t", seq: 1 });
    stop();
    await say({ type: "text_delta", stream: "t", seq: 2 });
    await say({ type: "text_delta", stream: "u", seq: 1 });
    await event(1);
    expect(listener.seqs).toEqual([1]);
    expect(client.state.type).toBe("ready");
  });

  it("stream_exists: refuses a second listener", async () => {
    const { client } = await open(follower());
    expect(() => client.listen("s", follower())).toThrow('There is a listener on stream "s".');
  });

  it("contains a listener that throws", async () => {
    const onError = vi.fn<(error: unknown, where: string) => void>();
    const { client, say } = played({ onError });
    void client.connect();
    await say(READY);
    const seqs: unknown[] = [];
    client.listen("s", {
      ...follower(),
      onFrame({ seq }) {
        seqs.push(seq);
        throw new Error("oops");
      },
    });
    await say({ type: "text_delta", stream: "s", seq: 1 });
    await say({ type: "text_delta", stream: "s", seq: 2 });
    expect(seqs).toEqual([1, 2]);
    expect(onError).toHaveBeenCalledTimes(2);
  });
});

describe("resume: on a new connection", () => {
  it("takes streams up before the requests of the stream go out", async () => {
    const { client, clock, got, say, hangUp } = played();
    const listener = follower();
    client.listen("s", listener, 4);
    await say(READY);
    void client.request("prompt", {}, { stream: "s" });
    await say({ type: "text_delta", stream: "s", seq: 5 });
    await hangUp();
    got.splice(0);
    await clock.advance(1000);
    await say(READY);
    expect(got.map(({ type, seq, payload }) => [type, seq, payload["after"]])).toEqual([
      ["hello", undefined, undefined],
      ["resume", 1, 5],
      ["prompt", 2, undefined],
    ]);
    expect(listener.resumes).toEqual([4, 5]);
  });

  it("what a listener asks for meanwhile goes behind", async () => {
    const { client, got, say } = played();
    client.listen(
      "s",
      follower((after) => {
        void client.request("tool_register", {}, { stream: "s" });
        return { type: "resume", payload: { after } };
      }),
    );
    await say(READY);
    expect(got.map(({ type }) => type)).toEqual(["hello", "resume", "tool_register"]);
  });

  it("leaves a stream alone whose listener does not want it", async () => {
    const { client, got, say } = played();
    client.listen(
      "s",
      follower(() => undefined),
    );
    await say(READY);
    expect(got.map(({ type }) => type)).toEqual(["hello"]);
  });

  it.each(["stream_not_found", "session_not_found"])("%s: the stream is lost", async (code) => {
    const { client, got, say } = played();
    const listener = follower();
    client.listen("s", listener);
    await say(READY);
    await say({ type: "nack", re: got.at(-1)?.id ?? "", payload: { code, message: "Gone." } });
    await say({ type: "text_delta", stream: "s", seq: 1 });
    expect([listener.lostWith, listener.seqs]).toEqual([[code], []]);
    expect(() => client.listen("s", follower())).not.toThrow();
  });

  it("a server that does not answer it is left", async () => {
    const { client, clock, say, attempts } = played({ pingMs: Infinity, requestTimeoutMs: 100 });
    const listener = follower();
    client.listen("s", listener);
    await say(READY);
    await clock.advance(100 + 250);
    expect(attempts()).toBe(2);
    expect(listener.lostWith).toEqual([]);
  });

  it("a connection that breaks meanwhile was none", async () => {
    const connected = vi.fn<() => void>();
    const { client, clock } = served(
      {},
      {
        connect: async () => {
          const [near, far] = createTransportPair();
          new WireServer([], { clock }).serve(far);
          let cut = (): void => {};
          return {
            send: (frame) => (frame.type === "resume" ? cut() : near.send(frame)),
            receive: (handler) => {
              cut = () => handler.onClose();
              near.receive(handler);
            },
            close: () => near.close(),
          };
        },
      },
    );
    client.listen("s", follower());
    void client.connect().then(connected);
    await clock.advance(1000);
    expect(connected).not.toHaveBeenCalled();
  });
});
