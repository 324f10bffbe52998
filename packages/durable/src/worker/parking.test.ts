import { callAll } from "@gyre/ai/testing";
import { afterAll, describe, expect, it } from "vitest";
import { openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { effectTool, scriptedAgent, temporaryUrls, wrapStore } from "./harness.ts";
import { Worker } from "./worker.ts";

const newUrl = temporaryUrls("parking", afterAll);

describe("a run that is parked in the moment when something is sent", () => {
  it("is seen to wait for its decision", async () => {
    const real = await openStore(newUrl());
    const others = new Runs(real);
    let finishes = 0;
    const store = wrapStore(real, async (name, call) => {
      if (name === "finish" && ++finishes === 1) await others.get("r").followUp("And rest.");
      return call();
    });
    const sign = effectTool("sign", () => "signed", { needsApproval: true });
    const agent = scriptedAgent([callAll(["sign"]), "Signed.", "Rested."], { tools: [sign] });
    const worker = new Worker(new Runs(store), { agents: [agent] });
    await worker.start();
    const run = await others.start("Sign.", { agent: "office", id: "r" });
    const stops: string[] = [];
    for await (const { event } of run.watch({ deltas: false })) {
      if (event.type !== "agent_end") continue;
      stops.push(event.stop);
      const { pending } = await run.info();
      const approved = pending.map(({ toolCall }) => [toolCall.id, { type: "approve" }] as const);
      if (approved.length > 0) await run.decide(Object.fromEntries(approved));
    }
    expect(stops).toEqual(["suspended", "done"]);
    expect((await run.result()).text).toBe("Rested.");
    await worker.stop();
    await real.close();
  });

  it("D16 gets steering in the order in which it was sent", async () => {
    const real = await openStore(newUrl());
    const others = new Runs(real);
    let finishes = 0;
    let onRead = (): void => {};
    const store = wrapStore(real, async (name, call) => {
      if (name === "finish" && ++finishes === 1) await others.get("r").steer("second");
      const answer = await call();
      if (name === "readInbox") setImmediate(() => onRead());
      return answer;
    });
    const sign = effectTool("sign", () => "signed", { needsApproval: true });
    const wait = effectTool("wait", async () => {
      const read = new Promise<void>((resolve) => (onRead = resolve));
      await others.get("r").steer("first");
      await read;
      return "waited";
    });
    const agent = scriptedAgent([callAll(["sign", "wait"]), "Done.", "Done."], {
      tools: [sign, wait],
    });
    const worker = new Worker(new Runs(store), { agents: [agent] });
    await worker.start();
    const run = await others.start("Sign.", { agent: "office", id: "r" });
    const { messages } = await run.result();
    const users = messages.flatMap((message) => (message.role === "user" ? [message.content] : []));
    expect(users).toEqual(["Sign.", "first", "second"]);
    await worker.stop();
    await real.close();
  });
});
