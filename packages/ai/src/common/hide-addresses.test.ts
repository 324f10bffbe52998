import { describe, expect, it } from "vitest";
import { hideAddresses } from "./hide-addresses.ts";

const BASE = "http://user:pass@llm.corp.example:8443/v1/tenant-7";

describe("hideAddresses", () => {
  it.each([
    [
      "Nothing answers at llm.corp.example:8443 (ECONNREFUSED).",
      "Nothing answers at [address] (ECONNREFUSED).",
    ],
    [`The URL ${BASE}/messages has credentials.`, "The URL [address] has credentials."],
    ['{"host":"LLM.corp.example"}', '{"host":"[address]"}'],
    ["connect ETIMEDOUT 10.1.2.3:443", "connect ETIMEDOUT [address]"],
    ["connect ECONNREFUSED ::1:8443, fe80::1:2:3.", "connect ECONNREFUSED [address], [address]."],
    [
      "See https://docs.example/errors. At 12:30:59, version 1.2.3.",
      "See https://docs.example/errors. At 12:30:59, version 1.2.3.",
    ],
    [
      "not-llm.corp.example is another, llm.corp.example.org too",
      "not-llm.corp.example is another, llm.corp.example.org too",
    ],
  ])("%s", (text, shown) => {
    expect(hideAddresses(text, [BASE, ""])).toBe(shown);
  });

  it("what is no URL is hidden as it is", () => {
    expect(hideAddresses('"proxy:8080/x" is wrong.', ["proxy:8080/x", "my gate"])).toBe(
      '"[address]" is wrong.',
    );
  });

  it("takes time in proportion to the text", () => {
    const text = "1.".repeat(200_000) + ":".repeat(200_000) + "llm.corp.exampl".repeat(20_000);
    const from = performance.now();
    hideAddresses(text, [BASE]);
    expect(performance.now() - from).toBeLessThan(2000);
  });
});
