import { expect, it } from "vitest";
import { emptyAssistantMessage } from "../stream/accumulate.ts";
import { scriptedModelInfo } from "../testing/scripted.ts";
import { textOf } from "./text.ts";

it("textOf gives the text of a message, and nothing else of it", () => {
  expect(textOf({ content: "as it is" })).toBe("as it is");
  const message = emptyAssistantMessage(scriptedModelInfo, 0);
  expect(textOf(message)).toBe("");
  message.content.push(
    { type: "thinking", thinking: "hm" },
    { type: "text", text: "one " },
    { type: "toolCall", id: "c", name: "x", arguments: {} },
    { type: "text", text: "two" },
  );
  expect(textOf(message)).toBe("one two");
});
