import { expect, it } from "vitest";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { playRandomRun } from "./random-runs.ts";

/** Enough for each of them to happen, by far. */
const RUNS = countCases(200, 1000);

it("plays runs of every kind", async () => {
  const seen = new Set<string>();
  const first = pickSeed();
  for (let seed = first; seed < first + RUNS; seed++) {
    const { messages, stop } = await playRandomRun(seed, async ({ run, decisions }) => {
      let calls = 0;
      for await (const event of run) {
        if (event.type === "retry") seen.add("retried");
        if (event.type === "tool_execution_start" && ++calls > 1) seen.add("parallel calls");
        if (event.type === "tool_execution_end") {
          calls--;
          seen.add(event.outcome);
          if (event.toolName === "helper") seen.add("a sub-agent");
        }
        if (event.type !== "message_end" || event.message.role !== "assistant") continue;
        if (event.message.stopReason === "redirected") seen.add("redirected");
        if (event.message.stopReason === "aborted") seen.add("cut off");
      }
      for (const decision of Object.values(decisions)) {
        seen.add(decision.type === "approve" && decision.args ? "edited" : decision.type);
      }
    });
    seen.add(stop);
    if (messages.filter(({ role }) => role === "user").length > 1) seen.add("steered");
  }
  const kinds = ["retried", "parallel calls", "a sub-agent", "redirected", "cut off", "edited"];
  const ends = ["approve", "deny", "steered", "ok", "error", "denied", "invalid", "skipped"];
  for (const kind of [...kinds, ...ends, "unknown_tool", "aborted", "done"]) {
    expect(seen, `GYRE_SEED=${first}`).toContain(kind);
  }
});
