import { Cron as Croner } from "croner";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { parseCron } from "./cron.ts";
import { findNextTime } from "./next-time.ts";
import { Zone } from "./zone.ts";

function listTimes(cron: string, zone: string, after: string, count: number): string[] {
  const parsed = parseCron(cron);
  const place = new Zone(zone);
  const times: string[] = [];
  for (let at = Date.parse(after); times.length < count;) {
    const next = findNextTime(parsed, place, at);
    if (next === undefined) break;
    times.push(new Date(next).toISOString().replace(":00.000Z", "Z"));
    at = next;
  }
  return times;
}

describe("the next time of a cron expression", () => {
  it.each([
    ["0 8 * * 1-5", "2026-11-13T12:00Z", ["2026-11-16T08:00Z", "2026-11-17T08:00Z"]],
    ["*/20 9-10 * * *", "2026-11-16T09:25:30Z", ["2026-11-16T09:40Z", "2026-11-16T10:00Z"]],
    ["0 0 29 2 *", "2026-11-16T00:00Z", ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]],
    ["0 0 29 feb *", "2096-03-01T00:00Z", ["2104-02-29T00:00Z"]],
    ["0 0 13 * fri", "2026-11-05T00:00Z", ["2026-11-06T00:00Z", "2026-11-13T00:00Z"]],
    ["0 0 * * fri-sun", "2026-11-16T00:00Z", ["2026-11-20T00:00Z", "2026-11-21T00:00Z"]],
    ["0 0 * * 7", "2026-11-16T00:00Z", ["2026-11-22T00:00Z"]],
    ["@monthly", "2026-11-16T00:00Z", ["2026-12-01T00:00Z", "2027-01-01T00:00Z"]],
  ])("%s", (cron, after, times) => {
    expect(listTimes(cron, "UTC", after, times.length)).toEqual(times);
  });

  // In Berlin clocks go from 2:00 to 3:00 at 1:00 UTC of March 29, and from 3:00 to 2:00 at 1:00 UTC
  // of October 25.
  it.each([
    [
      "a time that is left out: the first moment after it",
      "30 2 * * *",
      "2026-03-28T12:00Z",
      ["2026-03-29T01:00Z", "2026-03-30T00:30Z"],
    ],
    [
      "a time that comes twice: the first of them",
      "30 2 * * *",
      "2026-10-24T12:00Z",
      ["2026-10-25T00:30Z", "2026-10-26T01:30Z"],
    ],
    ["the second of them is not next", "30 2 * * *", "2026-10-25T01:10Z", ["2026-10-26T01:30Z"]],
    [
      "the end of the hour that comes twice",
      "0 3 * * *",
      "2026-10-24T12:00Z",
      ["2026-10-25T02:00Z", "2026-10-26T02:00Z"],
    ],
    [
      "every hour, an hour is left out",
      "30 * * * *",
      "2026-03-29T00:00Z",
      ["2026-03-29T00:30Z", "2026-03-29T01:30Z"],
    ],
    [
      "every hour, an hour comes twice",
      "30 * * * *",
      "2026-10-24T23:59Z",
      ["2026-10-25T00:30Z", "2026-10-25T01:30Z", "2026-10-25T02:30Z"],
    ],
  ])("clocks are changed: %s", (_title, cron, after, times) => {
    expect(listTimes(cron, "Europe/Berlin", after, times.length)).toEqual(times);
  });

  it.each([
    ["0 0 31 * *", "Pacific/Apia", "2011-12-29T00:00Z", ["2011-12-30T10:00Z"]],
    ["0 12 30 12 *", "Pacific/Apia", "2011-12-29T00:00Z", ["2011-12-30T10:00Z"]],
    ["30 2 * * *", "Australia/Lord_Howe", "2026-04-03T16:00Z", ["2026-04-04T16:00Z"]],
    ["45 0 * * *", "Asia/Kathmandu", "2026-01-01T00:00Z", ["2026-01-01T19:00Z"]],
  ])("%s in %s, after %s", (cron, zone, after, times) => {
    expect(listTimes(cron, zone, after, times.length)).toEqual(times);
  });

  it("is what croner says, for random expressions in random zones", { tags: "long" }, () => {
    const zones = Intl.supportedValuesOf("timeZone");
    const from = Date.UTC(2026, 0, 1);
    fc.assert(
      fc.property(
        // croner 11.0.0 leaves out days behind a month that has no 31st, such as March 1 in "0 0 */5 * *".
        ...[expressions(28), fc.constantFrom(...zones)],
        fc.integer({ min: from, max: from + 3 * 366 * 86_400_000 }),
        (cron, zone, after) => {
          const expected = new Croner(cron, { timezone: zone, paused: true });
          let at = after;
          for (let n = 0; n < 4; n++) {
            const next = expected.nextRun(new Date(at))?.getTime();
            const own = findNextTime(parseCron(cron), new Zone(zone), at);
            // It also leaves out the first of March in "0 * 1 * mon-fri", which fits by its own word.
            const isLeftOut = own !== undefined && own < (next ?? Infinity);
            const fits = isLeftOut && expected.match(new Date(own));
            const wanted = fits ? own : next;
            expect(own, `${cron} in ${zone} after ${new Date(at).toISOString()}`).toBe(wanted);
            if (own === undefined) return;
            at = own;
          }
        },
      ),
      { numRuns: countCases(500, 10_000), seed: pickSeed() },
    );
  });

  it("is the first that fits when each minute is looked at", { tags: "long" }, () => {
    const from = Date.UTC(2026, 0, 1);
    fc.assert(
      fc.property(
        expressions(31),
        fc.integer({ min: from, max: from + 3 * 366 * 86_400_000 }),
        (cron, after) => {
          const parsed = parseCron(cron);
          const next = findNextTime(parsed, new Zone("UTC"), after) ?? Infinity;
          const end = Math.min(next, after + 60 * 86_400_000);
          let first = (Math.floor(after / 60_000) + 1) * 60_000;
          while (first < end && !fits(cron, new Date(first))) first += 60_000;
          expect(first >= end ? next : first, `${cron} after ${after}`).toBe(next);
          if (next < Infinity) expect(fits(cron, new Date(next))).toBe(true);
        },
      ),
      { numRuns: countCases(100, 1_000), seed: pickSeed() },
    );
  });
});

/** Expressions whose days of the month go up to `lastDay`. */
function expressions(lastDay: number): fc.Arbitrary<string> {
  const range = (min: number, max: number): fc.Arbitrary<string> => {
    const value = fc.integer({ min, max });
    const step = fc.integer({ min: 1, max: Math.min(max, 12) });
    return fc.tuple(value, value, step).chain(([a, b, by]) => {
      const [low, high] = [Math.min(a, b), Math.max(a, b)];
      return fc.constantFrom(`${low}`, `${low}`, `${low}-${high}`, `${low}-${high}/${by}`);
    });
  };
  const list = (min: number, max: number): fc.Arbitrary<string> =>
    fc.array(range(min, max), { minLength: 1, maxLength: 3 }).map((parts) => parts.join(","));
  const field = (min: number, max: number): fc.Arbitrary<string> =>
    fc.oneof(
      fc.constant("*"),
      list(min, max),
      fc.integer({ min: 1, max: Math.min(max, 12) }).map((step) => `*/${step}`),
    );
  const time = fc.oneof(
    // Hours at which clocks are changed.
    fc.tuple(fc.integer({ min: 0, max: 59 }), fc.integer({ min: 0, max: 4 })),
    fc.tuple(field(0, 59), field(0, 23)),
  );
  const any = fc.constant("*");
  const weekday = fc.oneof(list(0, 7), fc.constantFrom("mon-fri", "SAT,sun"));
  const day = fc.oneof(
    ...[fc.tuple(any, any), fc.tuple(list(1, lastDay), any), fc.tuple(any, weekday)],
    fc.tuple(list(1, lastDay), weekday),
  );
  // No month is without its 28th.
  const month = lastDay > 28 ? any : fc.oneof(any, field(1, 12));
  return fc
    .tuple(time, day, month)
    .map(([times, [days, weekdays], months]) => [...times, days, months, weekdays].join(" "));
}

/** Whether an expression fits a time in UTC, read the plain way. */
function fits(cron: string, date: Date): boolean {
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = cron.split(" ");
  const has = (field: string, value: number, min: number): boolean =>
    field.split(",").some((part) => {
      const named = part.replace("mon-fri", "1-5").replace("SAT", "6").replace("sun", "0");
      const [range = "", step = "1"] = named.split("/");
      if (range === "*") return (value - min) % Number(step) === 0;
      const [low = 0, high = low] = range.split("-").map(Number);
      return value >= low && value <= high && (value - low) % Number(step) === 0;
    });
  const isDay = has(day, date.getUTCDate(), 1);
  const at = date.getUTCDay();
  const isWeekday = has(weekday, at, 0) || (at === 0 && has(weekday, 7, 0));
  return (
    has(minute, date.getUTCMinutes(), 0) &&
    has(hour, date.getUTCHours(), 0) &&
    has(month, date.getUTCMonth() + 1, 1) &&
    (day !== "*" && weekday !== "*" ? isDay || isWeekday : isDay && isWeekday)
  );
}

describe("a cron expression that cannot be read", () => {
  it.each([
    ["", "it has 0 fields and not five"],
    ["* * * *", "it has 4 fields and not five"],
    ["0 0 8 * * 1", "it has 6 fields and not five"],
    ["60 * * * *", 'the minute is 0 to 59, got "60"'],
    ["* * 0 * *", 'the day of the month is 1 to 31, got "0"'],
    ["* 22-2 * * *", 'the hour "22-2" goes down'],
    ["0/15 * * * *", "the minute has a step and no range: write 0-59/15"],
    ["*/0 * * * *", "the step of the minute is 1 to 59"],
    ["* * * * mo", 'the weekday is 0 to 7, got "mo"'],
    ["* * L * *", 'the day of the month is 1 to 31, got "L"'],
    ["1,, * * * *", 'the minute "" is not understood'],
    ["0 0 30 2 *", "no month of it has such a day"],
  ])("%j", (cron, reason) => {
    expect(() => parseCron(cron)).toThrow(reason);
    expect(() => parseCron(cron)).toThrow('such as "0 8 * * 1-5"');
  });

  it("a zone that there is not", () => {
    expect(() => new Zone("Europe/Berln")).toThrow(
      '"Europe/Berln" is no time zone: write one such as "Europe/Berlin" or "UTC".',
    );
  });
});
