import { type Failure, isRetryable, withRetry } from "@gyre/ai";
import { call, cutOff, fail, manualClock, say, stall, unfinished } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { never, play, start, tool } from "../testing/play.ts";
import { answer, empty, injected } from "../testing/render.ts";

const busy = fail("Busy", { kind: "overloaded", status: 529 });
const broken = fail("Broken", { kind: "unknown", status: 500 });
const begin = ["agent_start", "turn_start", ...injected("Go")];
const end = ["turn_end stop", "agent_end done"];
const failed = ["turn_end error", "agent_end error"];

describe("R22: what is retried", () => {
  it.each([408, 409, 424, 425, 429, 500, 502, 503, 504, 529])("R22: status %i is", (status) => {
    expect(isRetryable({ kind: "unknown", status })).toBe(true);
  });

  it.each([
    "rate_limit",
    "overloaded",
    "network",
    "timeout",
    "stalled",
    "incomplete",
    "empty",
  ] as const)("R22: kind %s is", (kind) => expect(isRetryable({ kind })).toBe(true));

  it.each([
    "auth",
    "quota",
    "bad_request",
    "overflow",
    "refused",
    "aborted",
    "hook",
    "invalid_transcript",
    "unknown",
  ] as const)("R22: kind %s is not", (kind) => expect(isRetryable({ kind })).toBe(false));

  it.each([400, 401, 403, 404, 413, 422])("R22: status %i is not", (status) => {
    expect(isRetryable({ kind: "unknown", status })).toBe(false);
  });

  it("R22: a quota that answers 429 is not", () => {
    expect(isRetryable({ kind: "quota", status: 429 })).toBe(false);
  });

  it("R22: what the provider says takes precedence", () => {
    expect(isRetryable({ kind: "auth", retryable: true })).toBe(true);
    expect(isRetryable({ kind: "network", retryable: false })).toBe(false);
  });
});

describe("R22: how it is retried", () => {
  it("R22: a failed attempt leaves no message, only retry", async () => {
    const { lines } = await play({ script: [busy, busy, "Hello"] }, 3_000);
    expect(lines).toEqual([
      ...begin,
      'retry 1 after 1000 ms: overloaded "Busy"',
      'retry 2 after 2000 ms: overloaded "Busy"',
      ...answer("Hello"),
      ...end,
    ]);
  });

  it("R22: start is held back until there is content, also when blocks were opened", async () => {
    const { lines } = await play(
      {
        script: [
          [unfinished(say("")), busy],
          [{ type: "thinking", thinking: "", open: true }, busy],
          "Hello",
        ],
      },
      3_000,
    );
    expect(lines).toEqual([
      ...begin,
      'retry 1 after 1000 ms: overloaded "Busy"',
      'retry 2 after 2000 ms: overloaded "Busy"',
      ...answer("Hello"),
      ...end,
    ]);
  });

  it("R22: after four retries the error is reported, with one message", async () => {
    const { lines, model } = await play({ script: () => broken }, 60_000);
    expect(lines).toEqual([
      ...begin,
      'retry 1 after 1000 ms: unknown "Broken"',
      'retry 2 after 2000 ms: unknown "Broken"',
      'retry 3 after 4000 ms: unknown "Broken"',
      'retry 4 after 8000 ms: unknown "Broken"',
      ...empty("error", "Broken"),
      ...failed,
    ]);
    expect(model.requests).toBe(5);
  });

  it.each([
    ["529", { kind: "overloaded", status: 529 }],
    ["503", { kind: "overloaded", status: 503 }],
    ["429", { kind: "rate_limit", status: 429 }],
    ["a network fault", { kind: "network" }],
    ["an early end", { kind: "incomplete" }],
  ] as const)("R22: there are ten attempts where waiting helps: %s", async (_, failure) => {
    const {
      recorder,
      end: ended,
      model,
    } = await play({ script: () => fail("Busy", failure) }, 300_000);
    const retries = recorder.events.flatMap((event) => (event.type === "retry" ? [event] : []));
    expect(retries.map(({ delayMs }) => delayMs / 1_000)).toEqual([1, 2, 4, 8, 16, 30, 30, 30, 30]);
    expect(retries.map(({ attempt, maxAttempts }) => [attempt, maxAttempts])).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8, 9].map((attempt) => [attempt, 10]),
    );
    expect([model.requests, ended.stop, ended.finalMessage?.errorMessage]).toEqual([
      10,
      "error",
      "Busy",
    ]);
  });

  it.each(["timeout", "stalled", "empty", "unknown"] as const)(
    "R22: there are five attempts at others: %s",
    async (kind) => {
      const { recorder, model } = await play(
        { script: () => fail("No", { kind, retryable: true }) },
        300_000,
      );
      const counted = recorder.events.flatMap((event) =>
        event.type === "retry" ? [event.maxAttempts] : [],
      );
      expect([counted, model.requests]).toEqual([[5, 5, 5, 5], 5]);
    },
  );

  it("R22: no retry begins more than five minutes after the first failure", async () => {
    const slow = fail("Slow down", { kind: "rate_limit", retryAfterMs: 60_000 });
    const { clock, done, model } = start({ script: () => slow });
    await clock.advance(300_000);
    const { end: ended } = await done;
    expect(model.requests).toBe(6);
    expect(ended.finalMessage?.errorMessage).toBe(
      "Slow down It was tried 6 times; the next would be after the 300 s that retry.maxElapsedMs allows.",
    );
  });

  it("R22: the five minutes begin when the first attempt has failed, and may be chosen", async () => {
    let asked = 0;
    const setup = {
      script: () => ({ ...busy, delayMs: asked++ === 0 ? 600_000 : 0 }),
      config: { retry: { maxElapsedMs: 7_000 } },
    };
    const { recorder } = await play(setup, 700_000);
    expect(recorder.only("retry")).toEqual([
      'retry 1 after 1000 ms: overloaded "Busy"',
      'retry 2 after 2000 ms: overloaded "Busy"',
      'retry 3 after 4000 ms: overloaded "Busy"',
    ]);
  });

  it("R22: the wait doubles up to its cap, with full jitter", async () => {
    const waits: number[] = [];
    const jitter = [0.5, 0, 1, 0.25, 1, 1, 1, 1];
    const { recorder } = await play(
      {
        script: () => busy,
        config: { retry: { maxRetries: 7 }, random: () => jitter.shift() ?? 1 },
      },
      300_000,
    );
    for (const event of recorder.events) if (event.type === "retry") waits.push(event.delayMs);
    expect(waits).toEqual([500, 0, 4_000, 2_000, 16_000, 30_000, 30_000]);
  });

  it("R22: base, cap and number may be chosen", async () => {
    const { recorder } = await play(
      { script: () => busy, config: { retry: { maxRetries: 3, baseDelayMs: 10, maxDelayMs: 25 } } },
      1_000,
    );
    expect(recorder.only("retry")).toEqual([
      'retry 1 after 10 ms: overloaded "Busy"',
      'retry 2 after 20 ms: overloaded "Busy"',
      'retry 3 after 25 ms: overloaded "Busy"',
    ]);
  });

  it("R22: no retries at all", async () => {
    const { lines } = await play({ script: [busy], config: { retry: { maxRetries: 0 } } });
    expect(lines).toEqual([...begin, ...empty("error", "Busy"), ...failed]);
  });

  it("R22: the server's wait is honored, to the millisecond", async () => {
    const { clock, done, model } = start({
      script: [fail("Slow down", { kind: "rate_limit", retryAfterMs: 45_000 }), "Hello"],
    });
    await clock.advance(44_999);
    expect(model.requests).toBe(1);
    await clock.advance(1);
    expect((await done).lines[4]).toBe('retry 1 after 45000 ms: rate_limit "Slow down"');
  });

  it("R22: a longer wait than maxRetryDelayMs fails at once and says how long it was", async () => {
    const slow = fail("Slow down", { kind: "rate_limit", retryAfterMs: 61_000 });
    const { lines, end: ended } = await play({ script: [slow] });
    expect(lines.filter((line) => line.startsWith("retry"))).toEqual([]);
    expect(ended.finalMessage?.errorMessage).toMatch(/^Slow down .*61 s.*60 s/);
    const { end: own } = await play({
      script: [fail("Slow down", { kind: "rate_limit", retryAfterMs: 2_001 })],
      config: { maxRetryDelayMs: 2_000 },
    });
    expect(own.finalMessage?.errorMessage).toMatch(/3 s.*2 s/);
  });

  it("R22: what is not worth repeating is not repeated", async () => {
    const { lines } = await play({ script: [fail("Bad key", { kind: "auth", status: 401 })] });
    expect(lines).toEqual([...begin, ...empty("error", "Bad key"), ...failed]);
  });

  it("R22: nothing is retried once content was passed on", async () => {
    const { lines, model } = await play({ script: [[say("Half"), busy]] });
    expect(lines).toEqual([
      ...begin,
      "message_start assistant",
      'update text +"Half" end',
      'message_end assistant error "Half" (Busy)',
      ...failed,
    ]);
    expect(model.requests).toBe(1);
  });

  it("R22: a call that began is content too, and is taken out when it was not finished", async () => {
    const { lines } = await play({
      script: [[unfinished(call("x", '{"a":', "c1")), busy]],
      tools: [tool("x")],
    });
    expect(lines).toEqual([
      ...begin,
      "message_start assistant",
      'update call +"{\\"a\\":"',
      "message_end assistant error (Busy)",
      ...failed,
    ]);
  });

  it("R22: an early end is retried too", async () => {
    const { lines } = await play({ script: [cutOff(), cutOff(), "Hello"] }, 3_000);
    expect(lines.slice(4, 6)).toEqual([
      'retry 1 after 1000 ms: incomplete "The response ended early."',
      'retry 2 after 2000 ms: incomplete "The response ended early."',
    ]);
  });

  it("R22: a stream that gives nothing, not even a stream, is an early end", async () => {
    const { recorder, end: ended } = await play(
      { streamFn: (() => undefined) as never, config: { retry: { maxRetries: 1 } } },
      2_000,
    );
    expect(recorder.only("retry")).toHaveLength(1);
    expect(ended.finalMessage?.failure?.kind).toBe("incomplete");
  });

  it("R22: an abort ends the wait at once; the message is aborted and empty", async () => {
    const { clock, done, abort, model } = start({ script: [busy] });
    await clock.advance(500);
    abort();
    expect((await done).lines).toEqual([
      ...begin,
      'retry 1 after 1000 ms: overloaded "Busy"',
      ...empty("aborted", "Aborted."),
      "turn_end aborted",
      "agent_end aborted",
    ]);
    expect([model.requests, clock.pending]).toEqual([1, 0]);
  });

  it("R22: an abort at the retry event makes no request", async () => {
    const { done, abort, model } = start({
      script: [busy],
      onEvent: (event) => {
        if (event.type === "retry") abort();
      },
    });
    expect((await done).end.stop).toBe("aborted");
    expect(model.requests).toBe(1);
  });

  it("R22: each turn has its own retries", async () => {
    const { recorder } = await play(
      { script: [busy, call("x"), busy, "Done"], tools: [tool("x")] },
      5_000,
    );
    expect(recorder.only("retry")).toEqual([
      'retry 1 after 1000 ms: overloaded "Busy"',
      'retry 1 after 1000 ms: overloaded "Busy"',
    ]);
  });

  it("R22: withRetry stands by itself", async () => {
    const failure: Failure = { kind: "network" };
    const seen: unknown[] = [];
    let tries = 0;
    const outcome = await withRetry(
      async () => ({
        message: { failure: ++tries < 3 ? failure : undefined, errorMessage: "Cut" } as never,
        shown: false,
      }),
      {
        random: () => 1,
        wait: async (ms) => {
          seen.push(ms);
          return true;
        },
        onRetry: (event) => void seen.push(event.attempt),
      },
    );
    expect([tries, seen, outcome.shown]).toEqual([3, [1, 1_000, 2, 2_000], false]);
  });
});

describe("the watchdog", () => {
  const over = (option: string, seconds: number): string =>
    `The service sent no content for ${seconds} s (${option}). It may still be at work, so it is not asked again by itself.`;

  it("R22: a service that has begun and sends no content is not asked again", async () => {
    const { clock, done, model } = start({ script: [stall(), "Hello"] });
    // The scripted model says "start", and nothing after it.
    await clock.advance(899_999);
    expect(model.requests).toBe(1);
    await clock.advance(1);
    const { lines } = await done;
    expect(lines.filter((line) => !line.startsWith("waiting"))).toEqual([
      ...begin,
      ...empty("error", over("watchdog.contentMs", 900)),
      ...failed,
    ]);
    expect(model.requests).toBe(1);
  });

  it("R22: a service that never begins is asked again", async () => {
    let asked = 0;
    const { clock, done, model } = start({
      script: ["Hello"],
      config: {
        random: () => 0,
        middleware: [{ model: (call, next) => (asked++ === 0 ? never() : next(call)) }],
      },
    });
    await clock.advance(899_999);
    expect([asked, model.requests]).toEqual([1, 0]);
    await clock.advance(1);
    const { lines } = await done;
    expect(lines.filter((line) => !line.startsWith("waiting"))).toEqual([
      ...begin,
      'retry 1 after 0 ms: stalled "The service did not answer for 900 s (watchdog.contentMs)."',
      ...answer("Hello"),
      ...end,
    ]);
  });

  it("R22: a request that gives no stream is watched too", async () => {
    const { clock, done } = start({
      streamFn: () => never(),
      config: { watchdog: { contentMs: { response: 1_000 } }, retry: { maxRetries: 0 } },
    });
    await clock.advance(999);
    await clock.advance(1);
    expect((await done).lines).toEqual([
      ...begin,
      ...empty("error", "The service did not answer for 1 s (watchdog.contentMs.response)."),
      ...failed,
    ]);
  });

  it("R22: silence after content is an error that keeps the partial", async () => {
    const { clock, done } = start({
      script: [[unfinished(say("Half")), stall()]],
      config: { watchdog: { contentMs: 10_000 } },
    });
    await clock.advance(9_999);
    await clock.advance(1);
    const { lines, end: ended } = await done;
    expect(lines).toEqual([
      ...begin,
      "message_start assistant",
      'update text +"Half"',
      `message_end assistant error "Half" (${over("watchdog.contentMs", 10)})`,
      ...failed,
    ]);
    expect(ended.finalMessage?.failure).toEqual({ kind: "stalled", retryable: false });
  });

  it("R22: a slow trickle is not silence", async () => {
    const { clock, done } = start({
      script: [{ parts: ["abcd"], chunkSize: 1, betweenMs: 10_000 }],
      config: { watchdog: { contentMs: 10_001 } },
    });
    await clock.advance(40_000);
    expect((await done).lines.slice(4)).toEqual([
      "message_start assistant",
      'update text +"a" +"b" +"c" +"d" end',
      'message_end assistant stop "abcd"',
      ...end,
    ]);
  });

  it("R22: a sink that takes its time is not the service's silence", async () => {
    const slowly = manualClock();
    const playing = start({
      clock: slowly,
      script: [{ parts: ["abcd"], chunkSize: 1 }],
      config: { hookTimeoutMs: 1e9 },
      onEvent: (event) => {
        const slow = event.type === "message_start" || event.type === "message_update";
        if (!slow) return undefined;
        return new Promise<void>((resolve) => slowly.after(500_000, resolve));
      },
    });
    await slowly.advance(5_000_000);
    expect((await playing.done).lines.slice(-2)).toEqual(end);
  });

  it("R22: the waits may be chosen, and switched off", async () => {
    const quick = start({
      script: [[say("Half"), stall()]],
      config: { watchdog: { contentMs: { text: 10, response: 10 } } },
    });
    await quick.clock.advance(10);
    expect((await quick.done).end.stop).toBe("error");
    const off = start({
      script: [[say("Half"), stall()]],
      config: { watchdog: { contentMs: 0 } },
    });
    await off.clock.advance(1e9);
    expect(off.recorder.only("agent_end")).toEqual([]);
    off.abort();
    expect((await off.done).end.stop).toBe("aborted");
  });

  it("R22: a service on this machine may think as long as it likes before it begins", async () => {
    const { clock, done, abort, recorder, model } = start({
      streamFn: () => never(),
      config: {
        model: { id: "l", name: "l", api: "a", provider: "p", baseUrl: "http://localhost:1234/v1" },
      },
    });
    await clock.advance(1e8);
    expect(recorder.only("retry", "agent_end")).toEqual([]);
    abort();
    await done;
    expect(model.requests).toBe(0);
  });

  it("no timer is left after a response", async () => {
    const { clock, done } = start({ script: ["Hello"] });
    await done;
    expect(clock.pending).toBe(0);
  });
});
