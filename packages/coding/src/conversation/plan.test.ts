import { expect, it } from "vitest";
import { findAnnounced, listSteps, noticeOfMode } from "./plan.ts";

it("takes the numbered steps of a plan for the list, without marks", () => {
  const plan =
    "# Plan\n\nWhy.\n\n1. Read `a.ts`\n   - a detail\n2) **Change** it\n- [ ] Test it\n- a remark\n";
  expect(listSteps(plan)).toEqual([
    { content: "Read a.ts", status: "pending" },
    { content: "Change it", status: "pending" },
    { content: "Test it", status: "pending" },
  ]);
  expect(listSteps("Nothing to do.")).toEqual([]);
});

it("states the mode where it becomes plan, and where that is over, once", () => {
  expect(noticeOfMode("ask", undefined, true)).toBeUndefined();
  const plan = noticeOfMode("plan", undefined, true);
  expect(plan?.text).toContain("The mode is plan.");
  expect(plan?.text).toContain("call the tool plan");
  expect(noticeOfMode("plan", undefined, false)?.text).toContain("as your answer");
  expect(noticeOfMode("plan", "plan", true)).toBeUndefined();
  expect(noticeOfMode("auto", "plan", true)?.text).toContain("The mode is auto");
  if (!plan) throw new Error("There is no notice.");
  expect(findAnnounced([plan])).toBe("plan");
});
