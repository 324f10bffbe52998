import { expect, test } from "vitest";
import { findCommand, parsePrompt } from "./prompt.ts";

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

test("audio and resources that are no text are files", () => {
  const resource = { uri: "file:///w/a%20b.pdf", mimeType: "application/pdf", blob: "JVBERg==" };
  const blocks = [
    { type: "text", text: "What is it? " },
    { type: "resource", resource },
    { type: "audio", data: "AAAA", mimeType: "audio/wav" },
  ] as const;
  expect(parsePrompt([...blocks], "/w")).toEqual({
    text: "What is it? `a b.pdf`",
    attachments: [
      {
        type: "file",
        mediaType: "application/pdf",
        name: "a b.pdf",
        source: { type: "base64", data: "JVBERg==" },
      },
      { type: "file", mediaType: "audio/wav", source: { type: "base64", data: "AAAA" } },
    ],
  });
});
