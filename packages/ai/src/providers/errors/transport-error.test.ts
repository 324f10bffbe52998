import { describe, expect, it } from "vitest";
import type { FailureKind } from "../../messages/messages.ts";
import { ProviderError } from "./provider-error.ts";
import { explainTransportError } from "./transport-error.ts";

describe("explainTransportError", () => {
  const coded = (code: string, message = "it failed"): Error =>
    new TypeError("fetch failed", { cause: Object.assign(new Error(message), { code }) });
  const thrown = (error: unknown, began = false, url = "http://localhost:11434/api?key=s3cret") =>
    explainTransportError(error, { service: "Acme", model: "m", url, began });

  it.each<[unknown, boolean, FailureKind, boolean]>([
    [coded("ECONNREFUSED"), false, "network", false],
    [coded("ENOTFOUND"), false, "network", true],
    [coded("ECONNRESET"), false, "network", true],
    [coded("UND_ERR_SOCKET", "other side closed"), false, "network", true],
    [coded("EPROTO"), false, "network", true],
    [coded("CERT_HAS_EXPIRED"), false, "network", false],
    [coded("SELF_SIGNED_CERT_IN_CHAIN"), false, "network", false],
    [coded("UND_ERR_CONNECT_TIMEOUT"), false, "timeout", true],
    [coded("UND_ERR_HEADERS_TIMEOUT"), false, "timeout", true],
    [coded("UND_ERR_BODY_TIMEOUT"), true, "stalled", true],
    [coded("UND_ERR_SOCKET"), true, "incomplete", true],
    [coded("Z_BUF_ERROR", "unexpected end of file"), true, "incomplete", true],
    [coded("Z_DATA_ERROR", "incorrect header check"), false, "network", true],
    [new TypeError("terminated"), true, "incomplete", true],
    [new TypeError("terminated"), false, "network", true],
    [new TypeError("Failed to fetch"), false, "network", true],
    [new TypeError("Load failed"), false, "network", true],
    [new DOMException("late", "TimeoutError"), false, "timeout", true],
    [new DOMException("stopped", "AbortError"), true, "aborted", false],
    [new TypeError("Failed to parse URL from x"), false, "bad_request", false],
    [new TypeError("fetch failed", { cause: new Error("bad port") }), false, "bad_request", false],
    [new TypeError("x is not a function"), false, "unknown", false],
    ["connection lost", false, "network", true],
    [undefined, false, "unknown", false],
  ])("judges %s (body begun: %s) as %s", (error, began, kind, retryable) => {
    expect(thrown(error, began).failure).toEqual({ kind, retryable });
  });

  it("says what has to be corrected where the address is invalid", () => {
    const at = { service: "Acme", model: "m", url: "acme", began: false, setBy: "ACME_BASE_URL" };
    expect(explainTransportError(coded("ERR_INVALID_URL"), at).message).toBe(
      "The address of Acme cannot be used (ERR_INVALID_URL). Correct ACME_BASE_URL; it begins with http:// or https://.",
    );
  });

  it("says of a port that fetch refuses that it is the port", () => {
    const error = new TypeError("fetch failed", { cause: new Error("bad port") });
    expect(thrown(error, false, "http://localhost:9/v1").message).toBe(
      "The address of Acme cannot be used (bad port). Correct it; fetch refuses this port.",
    );
  });

  it("says which host and what to do, and no more of the address", () => {
    expect(thrown(coded("ECONNREFUSED")).message).toBe(
      "Nothing answers at localhost:11434 (ECONNREFUSED). Check that Acme runs there, and its address.",
    );
    expect(thrown(coded("ECONNRESET"), true).message).toBe(
      "The response of Acme from localhost:11434 broke off (ECONNRESET). Try again.",
    );
    expect(thrown(coded("ENOTFOUND"), false, "nonsense").message).toContain("the address that");
  });

  it("asks again where a service far away refuses the connection, not where a local one does", () => {
    const refused = coded("ECONNREFUSED");
    expect(thrown(refused, false, "https://api.example.org/v1").retryable).toBe(true);
    expect(thrown(refused, false, "http://127.0.0.1:8080/v1").retryable).toBe(false);
    expect(thrown(refused, false, "http://[::1]:8080/v1").retryable).toBe(false);
  });

  it("looks through several addresses that were tried", () => {
    const errors = [Object.assign(new Error("no"), { code: "ECONNREFUSED" })];
    const error = new TypeError("fetch failed", { cause: new AggregateError(errors, "") });
    expect(thrown(error).message).toContain("ECONNREFUSED");
  });

  it("ends on causes that go round", () => {
    const error: Error & { cause?: unknown } = new Error("network");
    error.cause = error;
    expect(thrown(error).kind).toBe("network");
  });

  it("keeps the cause, but not one that quotes a key", () => {
    const cause = coded("ECONNRESET");
    expect(thrown(cause).cause).toBe(cause);
    const key = `Bearer sk-${"Ab12".repeat(8)}`;
    const error = thrown(new TypeError(`Headers.append: "${key}\n" is an invalid header value.`));
    expect(error.failure).toEqual({ kind: "bad_request", retryable: false });
    expect(error.message).toContain("Check the key for Acme");
    expect(error.message).not.toContain("Ab12");
    expect(error.cause).toBeUndefined();
  });

  it("gives a ProviderError back as it is", () => {
    const error = new ProviderError("Empty.", { kind: "empty" });
    expect(thrown(error)).toBe(error);
  });
});
