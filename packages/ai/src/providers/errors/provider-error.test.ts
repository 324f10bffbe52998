import { describe, expect, it } from "vitest";
import type { FailureKind } from "../../messages/messages.ts";
import { ProviderError } from "./provider-error.ts";

describe("ProviderError", () => {
  it("shows what its failure holds", () => {
    const failure = { kind: "rate_limit", retryAfterMs: 5, status: 429, requestId: "r" } as const;
    const error = new ProviderError("Slow down.", failure, { cause: "c" });
    expect(error).toMatchObject({ name: "ProviderError", message: "Slow down.", cause: "c" });
    expect(error).toMatchObject({ ...failure, failure, retryable: true });
  });

  it("judges by kind and status where the failure does not say", () => {
    const retryable = (kind: FailureKind, status?: number): boolean =>
      new ProviderError("", status === undefined ? { kind } : { kind, status }).retryable;
    expect(retryable("network")).toBe(true);
    expect(retryable("auth", 500)).toBe(false);
    expect(retryable("unknown", 502)).toBe(true);
    expect(retryable("unknown", 409)).toBe(true);
    expect(retryable("unknown", 400)).toBe(false);
    expect(retryable("unknown")).toBe(false);
  });
});
