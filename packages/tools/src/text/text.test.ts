import fc from "fast-check";
import { expect, it } from "vitest";
import { counted, grouped, within } from "./text.ts";

it("sets the thousands of a number apart, as English does", () => {
  const whole = fc.nat({ max: Number.MAX_SAFE_INTEGER });
  fc.assert(
    fc.property(whole, (count) => {
      expect(grouped(count)).toBe(count.toLocaleString("en-US"));
    }),
  );
  expect(counted(1_000_000, "line")).toBe("1,000,000 lines");
  expect(counted(1, "line")).toBe("1 line");
});

it("keeps a number within its limits", () => {
  expect(within("limit", 5, { least: 1, most: 10 })).toBe(5);
  expect(within("limit", 50, { least: 1, most: 10 })).toBe(10);
  expect(() => within("limit", 0, { least: 1 })).toThrow("limit has to be at least 1; it is 0.");
});
