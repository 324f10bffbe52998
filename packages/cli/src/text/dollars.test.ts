import { expect, it } from "vitest";
import { dollars } from "./dollars.ts";

it.each([
  [0, "$0.00"],
  [1, "$1.00"],
  [1.5, "$1.50"],
  [12.34567, "$12.3457"],
  [0.0123, "$0.0123"],
  [0.00012, "$0.0001"],
  [0.000012, "$0.000012"],
  [1e-8, "$0.00000001"],
  [123_456, "$123456.00"],
])("shows %d as %s", (sum, text) => {
  expect(dollars(sum)).toBe(text);
});
