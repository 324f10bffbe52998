import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { EventStream, IncompleteStreamError, JOIN_BEYOND_EVENTS } from "./event-stream.ts";
import { manualClock } from "../testing/manual-clock.ts";

type Event = { type: "part"; text: string } | { type: "last"; result: string };

const part = (text: string): Event => ({ type: "part", text });
const last = (result: string): Event => ({ type: "last", result });

function joinParts(one: Event, other: Event): Event | undefined {
  if (one.type !== "part" || other.type !== "part") return undefined;
  return part(one.text + other.text);
}

function makeStream(join?: typeof joinParts): EventStream<Event, string> {
  return new EventStream<Event, string>(
    (event) => event.type === "last",
    (event) => {
      if (event.type === "last" && event.result !== "bad") return event.result;
      throw new Error("no result in it");
    },
    join,
  );
}

async function readAll(stream: EventStream<Event, string>): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** How many elements are moved by methods of arrays while `run` runs. */
function countMoved(run: () => void): number {
  const { shift, slice, splice } = Array.prototype;
  let moved = 0;
  const counted = (method: (...args: never[]) => unknown) =>
    function (this: unknown[], ...args: unknown[]): unknown {
      const before = this.length;
      const result: unknown = Reflect.apply(method, this, args);
      moved += Array.isArray(result) ? result.length : before;
      return result;
    };
  try {
    Object.assign(Array.prototype, {
      shift: counted(shift),
      slice: counted(slice),
      splice: counted(splice),
    });
    run();
  } finally {
    Object.assign(Array.prototype, { shift, slice, splice });
  }
  return moved;
}

const settle = (): Promise<void> => manualClock().advance(0);

describe("the result", () => {
  const endings: [string, (stream: EventStream<Event, string>) => void, string | RegExp][] = [
    ["a terminal event", (stream) => stream.push(last("r")), "r"],
    ["end with a result", (stream) => stream.end("r"), "r"],
    ["end without a result", (stream) => stream.end(), /ended without a terminal event/],
    ["fail", (stream) => stream.fail(new Error("broken")), /^broken$/],
    ["a terminal event without a result in it", (stream) => stream.push(last("bad")), /no result/],
  ];

  it.each(endings)(
    "settles on %s, asked before and after, read or not",
    async (_name, end, expected) => {
      for (const read of [false, true]) {
        const stream = makeStream();
        const before = stream.result().catch((error: Error) => error.message);
        const reading = read ? readAll(stream).catch(() => {}) : undefined;
        stream.push(part("a"));
        expect(stream.closed).toBe(false);
        end(stream);
        expect(stream.closed).toBe(true);
        const after = stream.result().catch((error: Error) => error.message);
        for (const result of [await before, await after]) {
          if (typeof expected === "string") expect(result).toBe(expected);
          else expect(result).toMatch(expected);
        }
        await reading;
      }
    },
  );

  it("stays as it was first: what comes after the end is dropped", async () => {
    const stream = makeStream();
    stream.push(last("first"));
    stream.push(part("late"));
    stream.push(last("second"));
    stream.end("third");
    stream.fail(new Error("fourth"));
    expect(await stream.result()).toBe("first");
    expect(await readAll(stream)).toEqual([last("first")]);
  });

  it("of an early end is an IncompleteStreamError, with a code", async () => {
    const stream = makeStream();
    stream.end();
    const error = await stream.result().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(IncompleteStreamError);
    expect(error).toMatchObject({ code: "incomplete" });
  });

  it("may be undefined", async () => {
    const stream = new EventStream<number, undefined>(
      () => false,
      () => undefined,
    );
    stream.end(undefined);
    expect(await stream.result()).toBeUndefined();
  });

  describe("that no reader asks for", () => {
    const unhandled = vi.fn<() => void>();
    beforeEach(() => {
      unhandled.mockClear();
      process.on("unhandledRejection", unhandled);
    });
    afterEach(() => void process.off("unhandledRejection", unhandled));

    it("rejects nowhere", async () => {
      const [failed, ended, bad, read] = [makeStream(), makeStream(), makeStream(), makeStream()];
      const reading = readAll(read).catch((error: Error) => error.message);
      failed.fail(new Error("broken"));
      ended.end();
      bad.push(last("bad"));
      read.fail(new Error("seen"));
      expect(await reading).toBe("seen");
      await settle();
      expect(unhandled).not.toHaveBeenCalled();
    });
  });
});

describe("reading", () => {
  it("gives events that wait and events that come, in order, and ends", async () => {
    const stream = makeStream();
    stream.push(part("a"));
    stream.push(part("b"));
    const reading = readAll(stream);
    await settle();
    stream.push(part("c"));
    await settle();
    stream.push(part("d"));
    stream.push(last("r"));
    expect(await reading).toEqual([part("a"), part("b"), part("c"), part("d"), last("r")]);
  });

  it("after an early end gives what waits and ends quietly; the result says so", async () => {
    const stream = makeStream();
    stream.push(part("a"));
    stream.end();
    expect(await readAll(stream)).toEqual([part("a")]);
  });

  it("after fail gives what waits, then throws", async () => {
    const stream = makeStream();
    stream.push(part("a"));
    stream.fail(new Error("broken"));
    const events: Event[] = [];
    const reading = (async () => {
      for await (const event of stream) events.push(event);
    })();
    await expect(reading).rejects.toThrow("broken");
    expect(events).toEqual([part("a")]);
  });

  it("a reader that waits is notified of an end and of a failure", async () => {
    const [ended, failed] = [makeStream(), makeStream()];
    const reading = [readAll(ended), readAll(failed)] as const;
    await settle();
    ended.end();
    failed.fail(new Error("broken"));
    expect(await reading[0]).toEqual([]);
    await expect(reading[1]).rejects.toThrow("broken");
  });

  it("a second iterator throws while the first is in use, and not after it", async () => {
    const stream = makeStream();
    const first = stream[Symbol.asyncIterator]();
    expect(() => stream[Symbol.asyncIterator]()).toThrow("being iterated already");
    await first.return?.();
    stream.push(part("missed by no reader"));
    const second = readAll(stream);
    stream.push(last("r"));
    expect((await second).at(-1)).toEqual(last("r"));
    expect(await readAll(stream)).toEqual([]);
  });

  it("serves a reader that asks ahead without waiting, in order", async () => {
    const stream = makeStream();
    const reader = stream[Symbol.asyncIterator]();
    const asked = [reader.next(), reader.next(), reader.next(), reader.next()];
    for (const text of ["1", "2"]) stream.push(part(text));
    stream.push(last("r"));
    expect(await Promise.all(asked)).toEqual([
      { value: part("1"), done: false },
      { value: part("2"), done: false },
      { value: last("r"), done: false },
      { value: undefined, done: true },
    ]);
  });

  it("an iterator that was left cannot end the one after it", async () => {
    const stream = makeStream();
    const left = stream[Symbol.asyncIterator]();
    await left.return?.();
    const next = stream[Symbol.asyncIterator]();
    await left.return?.();
    stream.push(part("1"));
    expect(await next.next()).toEqual({ value: part("1"), done: false });
    expect(await left.next()).toEqual({ value: undefined, done: true });
  });

  it("after fail throws once, and is over", async () => {
    const stream = makeStream();
    stream.fail(new Error("broken"));
    const reader = stream[Symbol.asyncIterator]();
    await expect(reader.next()).rejects.toThrow("broken");
    expect(await reader.next()).toEqual({ value: undefined, done: true });
  });

  it("is linear: 100,000 waiting events are moved less than twice each", async () => {
    const count = 100_000;
    const stream = makeStream();
    for (let i = 0; i < count; i++) stream.push(part("x"));
    let taken = 0;
    const moved = countMoved(() => {
      while (stream.take()) taken++;
    });
    expect(taken).toBe(count);
    expect(moved).toBeLessThan(2 * count);
  });

  it("keeps the order through any mix of pushing and taking", () => {
    const stream = makeStream();
    let pushed = 0;
    let taken = 0;
    for (let round = 1; round < 200; round++) {
      for (let i = 0; i < (round * 7919) % 101; i++) stream.push(part(String(pushed++)));
      for (let i = 0; i < (round * 104_729) % 97; i++) {
        const event = stream.take();
        if (event) expect(event).toEqual(part(String(taken++)));
      }
    }
    for (let event = stream.take(); event; event = stream.take()) {
      expect(event).toEqual(part(String(taken++)));
    }
    expect(taken).toBe(pushed);
  });
});

describe("a reader that lags", () => {
  it("finds neighbors joined beyond the limit, and all of the text", () => {
    const stream = makeStream(joinParts);
    const pushed = Array.from({ length: 5000 }, (_, i) => `${i} `);
    for (const text of pushed) stream.push(part(text));
    stream.push(last("r"));
    const events: Event[] = [];
    for (let event = stream.take(); event; event = stream.take()) events.push(event);
    expect(events).toHaveLength(JOIN_BEYOND_EVENTS + 2);
    expect(events.slice(0, 2)).toEqual([part("0 "), part("1 ")]);
    expect(events.map((event) => (event.type === "part" ? event.text : "")).join("")).toBe(
      pushed.join(""),
    );
    expect(events.at(-1)).toEqual(last("r"));
  });

  it("finds each event alone up to the limit, and where join declines", () => {
    const few = makeStream(joinParts);
    const declined = makeStream(() => undefined);
    for (let i = 0; i <= JOIN_BEYOND_EVENTS; i++) few.push(part("x"));
    for (let i = 0; i < 1000; i++) declined.push(part("x"));
    const count = (stream: EventStream<Event, string>): number => {
      let events = 0;
      while (stream.take()) events++;
      return events;
    };
    expect([count(few), count(declined)]).toEqual([JOIN_BEYOND_EVENTS + 1, 1000]);
  });

  it("an event that was taken is never changed by a join", () => {
    const stream = makeStream(joinParts);
    for (let i = 0; i <= JOIN_BEYOND_EVENTS; i++) stream.push(part("x"));
    const taken = stream.take();
    stream.push(part("y"));
    stream.push(part("z"));
    expect(taken).toEqual(part("x"));
  });
});

describe("leaving", () => {
  it("frees what waits and what comes; the result still settles", async () => {
    const stream = makeStream();
    for (const text of ["a", "b", "c"]) stream.push(part(text));
    for await (const event of stream) {
      expect(event).toEqual(part("a"));
      break;
    }
    expect(stream.take()).toBeUndefined();
    stream.push(part("d"));
    expect(stream.take()).toBeUndefined();
    stream.push(last("r"));
    expect(stream.take()).toBeUndefined();
    expect(await stream.result()).toBe("r");
  });

  it("ends a next() that waits", async () => {
    const stream = makeStream();
    const iterator = stream[Symbol.asyncIterator]();
    const waiting = iterator.next();
    await iterator.return?.();
    expect(await waiting).toEqual({ value: undefined, done: true });
    expect(await iterator.next()).toEqual({ value: undefined, done: true });
  });

  it("detach does the same from outside", async () => {
    const stream = makeStream();
    stream.push(part("a"));
    stream.detach();
    expect(stream.take()).toBeUndefined();
    stream.push(part("b"));
    expect(stream.take()).toBeUndefined();
    stream.push(last("r"));
    expect(await stream.result()).toBe("r");
    expect(await readAll(stream)).toEqual([]);
  });

  it("detach ends a reader that waits", async () => {
    const stream = makeStream();
    const reading = readAll(stream);
    await settle();
    stream.detach();
    expect(await reading).toEqual([]);
  });
});

describe("whenReadable", () => {
  it("calls at once where something waits or all is over, else once when it does", () => {
    const stream = makeStream();
    const wake = vi.fn<() => void>();
    stream.whenReadable(wake);
    expect(wake).not.toHaveBeenCalled();
    stream.push(part("a"));
    stream.push(part("b"));
    expect(wake).toHaveBeenCalledTimes(1);
    stream.whenReadable(wake);
    expect(wake).toHaveBeenCalledTimes(2);
    stream.take();
    stream.take();
    stream.whenReadable(wake);
    expect(wake).toHaveBeenCalledTimes(2);
    stream.end();
    expect(wake).toHaveBeenCalledTimes(3);
    stream.whenReadable(wake);
    expect(wake).toHaveBeenCalledTimes(4);
  });

  it("a second call replaces the first", () => {
    const stream = makeStream();
    const [first, second] = [vi.fn<() => void>(), vi.fn<() => void>()];
    stream.whenReadable(first);
    stream.whenReadable(second);
    stream.push(part("a"));
    expect([first.mock.calls.length, second.mock.calls.length]).toEqual([0, 1]);
  });
});
