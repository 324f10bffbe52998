import type { ToolResultMessage } from "@gyre/ai";
import { expect, it } from "vitest";
import { upgradeResult } from "./upgrade.ts";

const MARK = "0123456789abcdef";
const marked = (text: string): string =>
  `<source kind="command" name="npm test" mark="${MARK}">\n${text}\n</source mark="${MARK}">`;
const source = { kind: "command", name: "npm test", mark: MARK };

function result(text: string, more: Partial<ToolResultMessage> = {}): ToolResultMessage {
  return {
    role: "toolResult",
    toolCallId: "c1",
    toolName: "shell",
    content: [{ type: "text", text }],
    isError: false,
    timestamp: 0,
    ...more,
  };
}

it("marks in the text of an older result become the source of a block", () => {
  const text = `Exit code 0.\n${marked("one\ntwo")}\n[… 3 lines left out …]\n${marked("three")}`;
  expect(upgradeResult(result(text)).content).toEqual([
    { type: "text", text: "Exit code 0." },
    { type: "text", text: "one\ntwo", source },
    { type: "text", text: "[… 3 lines left out …]" },
    { type: "text", text: "three", source },
  ]);
});

it("a result without marks stays as it is", () => {
  expect(upgradeResult(result("plain"))).toEqual(result("plain"));
});

it("a newer result that holds such lines is data, and stays as it is", () => {
  const newer = result(marked("evil"), { outcome: "ok" });
  expect(upgradeResult(newer)).toBe(newer);
});
