import { expect, it } from "vitest";
import { Cancellation } from "./cancellation.ts";

it("R21 a run is canceled once, for what came first", () => {
  const cancellation = new Cancellation();
  let calls = 0;
  cancellation.onCancel(() => {
    calls++;
    // What is canceled may cancel in its turn.
    cancellation.cancel("sink");
  });
  cancellation.cancel("aborted");
  cancellation.cancel("limit");
  expect([cancellation.reason, calls]).toEqual(["aborted", 1]);
});

it("R21 one that comes after it is called at once, and one that left is not", () => {
  const controller = new AbortController();
  const cancellation = new Cancellation(controller.signal);
  const called: string[] = [];
  cancellation.onCancel(() => called.push("left"))();
  cancellation.onCancel(() => called.push("before"));
  controller.abort();
  cancellation.onCancel(() => called.push("after"));
  expect(called).toEqual(["before", "after"]);
});
