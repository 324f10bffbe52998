import { expect, test } from "vitest";
import { findCommand } from "./prompt.ts";

test.each([
  [["/model two"], { name: "model", rest: "two" }],
  // As plugins may call theirs.
  [["/deploy-2 ", "now"], { name: "deploy-2", rest: "now" }],
  [["/tmp/x is full"], undefined],
  [["Say /help"], undefined],
])("%j is a command if it begins with the name of one", (texts, command) => {
  expect(findCommand(texts.map((text) => ({ type: "text", text })))).toEqual(command);
});

test("a prompt with anything but text is no command", () => {
  const image = { type: "image", data: "", mimeType: "image/png" } as const;
  expect(findCommand([{ type: "text", text: "/help" }, image])).toBeUndefined();
});
