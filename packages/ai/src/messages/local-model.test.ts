import { expect, it } from "vitest";
import { isLocalModel } from "./local-model.ts";

it.each([
  ["http://localhost:11434", true],
  ["http://LOCALHOST", true],
  ["https://127.0.0.1/v1", true],
  ["http://127.8.9.1:80", true],
  ["http://[::1]:8080/v1", true],
  ["http://localhost.example.com", false],
  ["http://127.0.0.1.example.com", false],
  ["https://api.example.com/localhost", false],
  ["", false],
])("a model at %j is local: %s", (baseUrl, expected) => {
  expect(isLocalModel({ baseUrl })).toBe(expected);
});

it("a model without an address is not known to be local", () => {
  expect(isLocalModel({})).toBe(false);
});
