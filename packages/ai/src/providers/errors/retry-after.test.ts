import { describe, expect, it } from "vitest";
import { parseDuration, parseRateLimitReset, parseRetryAfter } from "./retry-after.ts";

const NOW = Date.UTC(2026, 0, 1, 12, 0, 0);

const parseWait = (headers: Record<string, string>): number | undefined =>
  parseRetryAfter(new Headers(headers), NOW);

const parseReset = (headers: Record<string, string>): number | undefined =>
  parseRateLimitReset(new Headers(headers), NOW);

describe("parseRetryAfter", () => {
  it.each([
    [{ "retry-after": "2" }, 2_000],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "1.25" }, 1_250],
    [{ "retry-after": "-5" }, 0],
    [{ "retry-after": "7200" }, 7_200_000],
    [{ "retry-after": " 3 " }, 3_000],
    [{ "retry-after": "30s" }, 30_000],
    [{ "retry-after-ms": "1500.2" }, 1_501],
    [{ "retry-after": "Thu, 01 Jan 2026 12:00:10 GMT" }, 10_000],
    [{ "retry-after": "Thursday, 01-Jan-26 13:00:00 GMT" }, 3_600_000],
    [{ "retry-after": "2026-01-01T12:00:07Z" }, 7_000],
    [{ "retry-after": "Thu, 01 Jan 2026 11:00:00 GMT" }, 0],
  ])("reads %j as %d ms", (headers, ms) => {
    expect(parseWait(headers)).toBe(ms);
  });

  it.each(["soon", "", "1e3", "NaN", "Thu, 99 Foo 2026 GMT", "in 5", "9".repeat(400)])(
    "ignores %j",
    (value) => {
      expect(parseWait({ "retry-after": value, "retry-after-ms": value })).toBeUndefined();
    },
  );

  it("takes the longer of the two, and the one that can be read", () => {
    expect(parseWait({ "retry-after": "1", "retry-after-ms": "0" })).toBe(1_000);
    expect(parseWait({ "retry-after": "1", "retry-after-ms": "2500" })).toBe(2_500);
    expect(parseWait({ "retry-after": "later", "retry-after-ms": "70" })).toBe(70);
  });

  it("is unknown without headers", () => {
    expect(parseWait({})).toBeUndefined();
  });
});

describe("parseRateLimitReset", () => {
  it("takes the reset of the limit that is used up", () => {
    const headers = {
      "x-ratelimit-remaining-requests": "12",
      "x-ratelimit-reset-requests": "9h",
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "6m0.5s",
    };
    expect(parseReset(headers)).toBe(360_500);
    expect(parseReset({ ...headers, "x-ratelimit-remaining-tokens": "1" })).toBeUndefined();
    expect(parseReset({ "x-ratelimit-reset-tokens": "6m0s" })).toBeUndefined();
  });

  it("reads seconds from now and points in time", () => {
    const reset = (value: string): number | undefined =>
      parseReset({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": value });
    expect(reset("1.5")).toBe(1_500);
    expect(reset(String(NOW / 1_000 + 20))).toBe(20_000);
    expect(reset(String(NOW + 20))).toBe(20);
    expect(reset(String(NOW - 20))).toBe(0);
    expect(reset("2026-01-01T12:01:00Z")).toBe(60_000);
    expect(reset("tomorrow")).toBeUndefined();
  });
});

describe("parseDuration", () => {
  it("adds up the parts", () => {
    expect(parseDuration("1h2m3s4ms")).toBe(3_723_004);
    expect(parseDuration("0.5d")).toBe(43_200_000);
    expect(parseDuration("12")).toBeUndefined();
    expect(parseDuration("1s later")).toBeUndefined();
    expect(parseDuration(null)).toBeUndefined();
  });
});
