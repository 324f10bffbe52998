import { call } from "@gyre/ai/testing";
import { afterAll, describe, expect, it, vi } from "vitest";
import { openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { effectTool, scriptedAgent, temporaryUrls, withWorker, wrapStore } from "./harness.ts";

const newUrl = temporaryUrls("late", afterAll);

function createGate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

describe("a decision that comes too late", () => {
  it("D19 does not count for a later call of the same id", async () => {
    const url = newUrl();
    const paid: string[] = [];
    const pay = effectTool("pay", (to) => String(paid.push(to)), { needsApproval: true });
    const asked = createGate();
    const sent = createGate();
    // Some models count their calls from the beginning in each answer.
    const agent = scriptedAgent(
      [
        call("pay", { to: "a" }, "call_0"),
        async () => {
          asked.open();
          await sent.opened;
          return call("pay", { to: "b" }, "call_0");
        },
        "Done.",
      ],
      { tools: [pay] },
    );
    const checked = createGate();
    // A second person, whose process is slow: what it decides on was decided meanwhile.
    const slow = new Runs(
      wrapStore(await openStore(url), async (name, act) => {
        if (name !== "send") return act();
        checked.open();
        await asked.opened;
        const outcome = await act();
        sent.open();
        return outcome;
      }),
    );
    await withWorker(url, { agents: [agent] }, async (runs) => {
      const run = await runs.start("Pay.", { agent: "office", id: "r" });
      const untilWaiting = (to: string): Promise<void> =>
        vi.waitFor(
          async () => {
            const { pending } = await run.info();
            expect(pending.map(({ toolCall }) => toolCall.arguments)).toEqual([{ to }]);
          },
          { timeout: 20_000 },
        );
      await untilWaiting("a");
      const late = slow.get("r").decide({ call_0: { type: "approve" } });
      await checked.opened;
      await run.decide({ call_0: { type: "approve" } });
      await late;
      await untilWaiting("b");
      expect(paid).toEqual(["a"]);
      const [second] = (await run.info()).pending;
      await run.decide({ [second?.toolCall.id ?? ""]: { type: "approve" } });
      expect((await run.result()).text).toBe("Done.");
      expect(paid).toEqual(["a", "b"]);
    });
    await slow.close();
  });
});
