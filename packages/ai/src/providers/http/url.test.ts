import { expect, it } from "vitest";
import { joinUrl } from "./url.ts";

it("puts the path below the base", () => {
  expect(joinUrl("https://a.test/v1", "/chat")).toBe("https://a.test/v1/chat");
  expect(joinUrl("https://a.test/v1//", "chat")).toBe("https://a.test/v1/chat");
});

it("keeps the query of the base at the end", () => {
  expect(joinUrl("https://a.test/d/x?api-version=1&b=2", "/chat")).toBe(
    "https://a.test/d/x/chat?api-version=1&b=2",
  );
  expect(joinUrl("https://a.test/d/x/?api-version=1", "/chat")).toBe(
    "https://a.test/d/x/chat?api-version=1",
  );
});
