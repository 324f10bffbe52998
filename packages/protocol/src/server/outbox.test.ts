import { describe, expect, it } from "vitest";
import type { Envelope } from "../frames/envelope.ts";
import { Outbox } from "./outbox.ts";
import type { Transport } from "../transports/base/transport.ts";

const answer = (id: string, chars: number): Envelope => ({
  v: 1,
  type: "ack",
  id,
  re: "m",
  payload: { text: "x".repeat(chars) },
});

/** One whose reader never takes more than the first frame. */
const stuck: Transport = {
  send: () => new Promise(() => {}),
  receive: () => {},
  close: () => Promise.resolve(),
};

describe("a slow reader is not fed without end", () => {
  it("answers that wait count with their length", () => {
    let overflows = 0;
    const outbox = new Outbox(stuck, () => overflows++, 10_000);
    outbox.push(answer("sent", 9_000));
    outbox.push(answer("waits", 9_000));
    expect(overflows).toBe(0);
    outbox.push(answer("too much", 9_000));
    expect(overflows).toBe(1);
  });
});
