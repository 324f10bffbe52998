import { manualClock } from "@gyre/ai/testing";
import type { McpQuestion } from "@gyre/mcp";
import { expect, it } from "vitest";
import { ANSWER_MS, ServerQuestions } from "./server-questions.ts";

const QUESTION: McpQuestion = {
  kind: "form",
  server: "tea",
  message: "Which tea?",
  fields: [{ name: "name", label: "name", isRequired: true, type: "text" }],
};
const never = new AbortController().signal;

function follow(): {
  questions: ServerQuestions;
  clock: ReturnType<typeof manualClock>;
  changes: number[];
} {
  const clock = manualClock();
  const questions = new ServerQuestions(clock);
  const changes: number[] = [];
  questions.onChange = () => changes.push(questions.list().length);
  return { questions, clock, changes };
}

it("a question waits for an answer that fits it, and then for none", async () => {
  const { questions, changes } = follow();
  const asked = questions.ask(QUESTION, never);
  const [shown] = questions.list();
  expect(shown).toMatchObject(QUESTION);
  expect(() => questions.answer(shown?.id, { action: "accept", content: { name: 1 } })).toThrow(
    "has to be a text",
  );
  questions.answer(shown?.id, { action: "accept", content: { name: "green" } });
  expect(await asked).toEqual({ action: "accept", content: { name: "green" } });
  expect(() => questions.answer(shown?.id, { action: "decline" })).toThrow("No question");
  expect(changes).toEqual([1, 0]);
});

it("a question is canceled when its call is, and when no client answers in time", async () => {
  const { questions, clock } = follow();
  const controller = new AbortController();
  const aborted = questions.ask(QUESTION, controller.signal);
  const late = questions.ask(QUESTION, never);
  controller.abort();
  expect(await aborted).toEqual({ action: "cancel" });
  expect(questions.list()).toHaveLength(1);
  await clock.advance(ANSWER_MS);
  expect(await late).toEqual({ action: "cancel" });
  expect(await questions.ask(QUESTION, controller.signal)).toEqual({ action: "cancel" });
  expect(questions.list()).toEqual([]);
});

it("a question is declined where no client follows the session", async () => {
  const questions = new ServerQuestions(manualClock());
  expect(await questions.ask(QUESTION, never)).toEqual({ action: "decline" });
});
