import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Backoff } from "./backoff.ts";

const delays = (backoff: Backoff, count: number): (number | undefined)[] =>
  Array.from({ length: count }, () => backoff.next()?.delayMs);

describe("reconnect: the delays between attempts", () => {
  it("doubles the ceiling with each attempt, up to the most", () => {
    const backoff = new Backoff({ baseMs: 100, maxMs: 1000, firstAttempts: 6 }, () => 1);
    expect(delays(backoff, 6)).toEqual([100, 200, 400, 800, 1000, 1000]);
  });

  it("waits for anything from nothing to the ceiling", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1 }),
        (random) => {
          const values = random.values();
          const backoff = new Backoff({ firstAttempts: Infinity }, () => values.next().value ?? 0);
          random.forEach((value, at) => {
            const ceiling = Math.min(10_000, 250 * 2 ** at);
            expect(backoff.next()).toEqual({
              attempt: at + 1,
              delayMs: Math.floor(value * ceiling),
            });
          });
        },
      ),
    );
  });

  it("gives a server up that was never there, and waits for one that was", () => {
    const never = new Backoff({ firstAttempts: 2 });
    expect(delays(never, 3).map((delay) => delay === undefined)).toEqual([false, false, true]);
    const once = new Backoff({ firstAttempts: 2 });
    once.next(60_000);
    expect(delays(once, 20)).not.toContain(undefined);
  });

  it("starts again after a connection that lived", () => {
    const backoff = new Backoff({ baseMs: 100 }, () => 1);
    delays(backoff, 3);
    expect(backoff.next(400)).toEqual({ attempt: 1, delayMs: 100 });
  });

  it("goes on after a connection that was shorter than the wait for it", () => {
    const backoff = new Backoff({ baseMs: 100 }, () => 1);
    delays(backoff, 3);
    expect(backoff.next(399)).toEqual({ attempt: 4, delayMs: 800 });
  });

  it("stops retrying after so many attempts in a row", () => {
    const backoff = new Backoff({ baseMs: 100, maxAttempts: 2 }, () => 1);
    expect(delays(backoff, 3)).toEqual([100, 200, undefined]);
  });
});
