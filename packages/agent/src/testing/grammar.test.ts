import { expect, it } from "vitest";
import { Grammar } from "./grammar.ts";
import { anAnswer, makeResult } from "./messages.ts";
import { user } from "./play.ts";
import type { AgentEvent } from "../contract/types.ts";

it("the grammar that the tests use refuses what the rules forbid", () => {
  const accept = (...events: AgentEvent[]) => {
    const grammar = new Grammar();
    for (const event of events) grammar.accept(event);
  };
  const message = user("A");
  expect(() => accept({ type: "turn_start" })).toThrow(/turn_start/);
  expect(() => accept({ type: "agent_start" }, { type: "agent_start" })).toThrow(/once/);
  expect(() => accept({ type: "agent_start" }, { type: "message_start", message })).toThrow(
    /message_start/,
  );
  expect(() =>
    accept(
      { type: "agent_start" },
      { type: "turn_start" },
      { type: "message_start", message: anAnswer },
      { type: "message_end", message: anAnswer },
      { type: "message_start", message },
    ),
  ).toThrow(/out of order/);
  expect(() =>
    accept(
      { type: "agent_start" },
      { type: "turn_start" },
      { type: "turn_end", message: anAnswer, toolResults: [makeResult("x1") as never] },
      { type: "turn_end", message: anAnswer, toolResults: [] },
    ),
  ).toThrow(/turn_end/);
});
