import { manualClock } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { authorize, withToken } from "./authorize.ts";
import type { Envelope } from "../../frames/envelope.ts";
import { HELLO_TIMEOUT_MS } from "../../frames/limits.ts";
import { type Transport, createTransportPair } from "./transport.ts";

function frame(type: string, payload: Envelope["payload"] = {}): Envelope {
  return { v: 1, type, id: "c_1", payload };
}

/** A listener with the token "right", and what both sides see. */
function guarded() {
  const clock = manualClock();
  const [client, far] = createTransportPair();
  const events: string[] = [];
  const served: Envelope[] = [];
  let refused = 0;
  client.receive({
    onFrame: ({ type, re, payload }) => events.push(`${type} ${re} ${String(payload["code"])}`),
    onFault: () => events.push("fault"),
    onClose: () => events.push("closed"),
  });
  const serve = (transport: Transport): void =>
    transport.receive({
      onFrame: (each) => served.push(each),
      onFault: () => {},
      onClose: () => events.push("served one closed"),
    });
  authorize(far, serve, { check: (token) => token === "right", clock, onRefused: () => refused++ });
  return { client, clock, events, served, refused: () => refused };
}

describe("a token always: where there are no headers, hello has it", () => {
  it("lets in who has it, and leaves it out of what is handed on", async () => {
    const { client, clock, events, served } = guarded();
    const known = withToken(client, "right");
    void known.send(frame("hello", { versions: [1] }));
    void known.send(frame("ping"));
    await clock.turn();
    expect(served).toEqual([frame("hello", { versions: [1] }), frame("ping")]);
    expect([events, clock.pending]).toEqual([[], 0]);
    await known.close();
    await clock.turn();
    expect(events).toContain("served one closed");
  });

  it.each([
    ["a wrong token", frame("hello", { versions: [1], token: "wrong" })],
    ["no token", frame("hello", { versions: [1] })],
    ["a token that is no text", frame("hello", { token: 1 })],
    ["another frame first", frame("ping", { token: "right" })],
  ])("unauthorized: %s gets a nack and the end, and nothing is served", async (_, first) => {
    const { client, clock, events, served, refused } = guarded();
    void client.send(first);
    void client.send(frame("hello", { token: "right" }));
    await clock.turn();
    expect(events).toEqual(["nack c_1 unauthorized", "closed"]);
    expect([served, refused(), clock.pending]).toEqual([[], 1, 0]);
  });

  it("unauthorized: who says nothing is sent away in time", async () => {
    const { clock, events, refused } = guarded();
    await clock.advance(HELLO_TIMEOUT_MS - 1);
    expect(events).toEqual([]);
    await clock.advance(1);
    expect(events).toEqual(["nack undefined unauthorized", "closed"]);
    expect(refused()).toBe(1);
  });

  it("forgets who leaves before", async () => {
    const { client, clock, refused } = guarded();
    await client.close();
    await clock.turn();
    expect([clock.pending, refused()]).toEqual([0, 0]);
  });
});
