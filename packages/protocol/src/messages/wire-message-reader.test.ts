import { emptyAssistantMessage } from "@gyre/ai";
import { expect, it } from "vitest";
import { WireMessageReader } from "./wire-message-reader.ts";

const MODEL = { id: "m", name: "M", api: "a", provider: "p" };

it("builds the message of compact events", () => {
  const message = emptyAssistantMessage(MODEL, 0);
  const reader = new WireMessageReader(message);
  reader.read({ type: "text_start", contentIndex: 0 });
  reader.read({ type: "text_delta", contentIndex: 0, delta: "Hi" });
  expect(reader.finish({ message, blocks: [{ index: 0, length: 2 }] }).content).toEqual([
    { type: "text", text: "Hi" },
  ]);
});

it("throws ProtocolError for an event that cannot be read", () => {
  const message = emptyAssistantMessage(MODEL, 0);
  const reader = new WireMessageReader(message);
  expect(() => reader.read({ type: "text_delta", contentIndex: 0 })).toThrow(
    expect.objectContaining({ name: "ProtocolError", code: "invalid_request" }),
  );
  expect(() => reader.finish({ message, blocks: [{ index: 0, length: 0 }] })).toThrow(
    expect.objectContaining({ name: "ProtocolError", code: "invalid_sequence" }),
  );
});
