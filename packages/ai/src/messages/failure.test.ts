import { describe, expect, it } from "vitest";
import { isRetryable } from "./failure.ts";
import type { Failure, FailureKind } from "./messages.ts";

const BY_KIND: Record<FailureKind, boolean> = {
  rate_limit: true,
  overloaded: true,
  network: true,
  timeout: true,
  stalled: true,
  incomplete: true,
  empty: true,
  auth: false,
  quota: false,
  overflow: false,
  bad_request: false,
  refused: false,
  aborted: false,
  invalid_transcript: false,
  hook: false,
  unknown: false,
};

describe("isRetryable", () => {
  it.each(Object.entries(BY_KIND) as [FailureKind, boolean][])(
    "of kind %s: %s",
    (kind, expected) => {
      expect(isRetryable({ kind })).toBe(expected);
      expect(isRetryable({ kind, retryable: !expected })).toBe(!expected);
    },
  );

  it.each([
    [400, false],
    [401, false],
    [404, false],
    [408, true],
    [409, true],
    [424, true],
    [425, true],
    [429, true],
    [499, false],
    [500, true],
    [503, true],
    [529, true],
  ])("of an unknown kind with status %i: %s", (status, expected) => {
    expect(isRetryable({ kind: "unknown", status })).toBe(expected);
    expect(isRetryable({ kind: "rate_limit", status })).toBe(true);
    expect(isRetryable({ kind: "quota", status })).toBe(false);
    expect(isRetryable({ kind: "aborted", status })).toBe(false);
  });

  it("judges a kind that this version does not know by its status", () => {
    const failure = (status?: number): Failure =>
      JSON.parse(JSON.stringify({ kind: "new", status })) as Failure;
    expect(isRetryable(failure(503))).toBe(true);
    expect(isRetryable(failure(400))).toBe(false);
    expect(isRetryable(failure())).toBe(false);
  });
});
