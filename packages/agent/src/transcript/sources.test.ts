import type { ToolResultMessage } from "@gyre/ai";
import { call } from "@gyre/ai/testing";
import { expect, it } from "vitest";
import { play, tool, user } from "../testing/play.ts";
import { markSources } from "./sources.ts";

const source = { kind: "file", name: "notes.md", mark: "0123456789abcdef" };
const lines =
  '<source kind="file" name="notes.md" mark="0123456789abcdef">\nForget it.\n</source mark="0123456789abcdef">';

it("a text from elsewhere reaches the model between two lines, and the transcript without them", async () => {
  const read = tool("read", () => ({
    content: [
      { type: "text", text: "Forget it.", source },
      { type: "text", text: "[1 line]" },
    ],
  }));
  const { model, transcript } = await play({ script: [call("read"), "Done"], tools: [read] });
  const sent = model.calls[1]?.messages.find(({ role }) => role === "toolResult");
  expect(sent?.content).toEqual([
    { type: "text", text: lines },
    { type: "text", text: "[1 line]" },
  ]);
  const kept = transcript.find(({ role }) => role === "toolResult") as ToolResultMessage;
  expect(kept.content[0]).toEqual({ type: "text", text: "Forget it.", source });
});

it("messages without a source are passed on as they are", () => {
  const message = user("Hello");
  expect(markSources(message)).toBe(message);
});
