import { textOf } from "@gyre/ai";
import { call, manualClock, say, scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { describe, expect, it } from "vitest";
import { Agent } from "../agent/agent.ts";
import type { AgentOptions } from "../agent/options.ts";
import { LEFT_OUT_TEXT } from "./compaction.ts";
import { later, never, Recorder, tool } from "../testing/play.ts";
import type { AgentEvent } from "../contract/types.ts";

const words = (count: number): string => "word ".repeat(count).trim();
const long = tool("x", () => words(400));
const steps = (count: number): ScriptStep[] =>
  Array.from({ length: count }, (_, i) => [say(`Step ${i}`), call("x", { i })]);

/** An agent that has worked for some turns, far below its limit. */
async function worked(options: AgentOptions = {}, script: ScriptStep[] = [...steps(6), "Done"]) {
  const clock = manualClock();
  const model = scriptedModel([...script, "More", "Even more"], { clock });
  const agent = new Agent({
    protocol: model,
    clock,
    ...options,
    model: model.model,
    tools: [long],
  });
  await agent.prompt("Go");
  const recorder = new Recorder();
  agent.subscribe((event) => recorder.sink(event));
  return { agent, model, recorder, clock };
}

describe("R24: a compaction that a caller asks for", () => {
  it("leaves out all but the first request and the last turns, far below the limit", async () => {
    const { agent, model, recorder } = await worked({ context: { keepTurns: 1 } });
    const gain = await agent.compact();
    expect(gain?.after).toBeLessThan((gain?.before ?? 0) / 2);
    expect(recorder.only("compaction")).toHaveLength(1);
    expect(recorder.events).toHaveLength(1);
    await agent.prompt("Again");
    const sent = model.calls.at(-1)?.messages ?? [];
    expect(sent.map(textOf)).toEqual([
      "Go",
      `${LEFT_OUT_TEXT}\n\nSteps:\n${[0, 1, 2, 3, 4, 5].map((n) => `- Step ${n}`).join("\n")}`,
      "Done",
      "Again",
    ]);
  });

  it("passes to the summarizer what to keep", async () => {
    const asked: unknown[] = [];
    const { agent, model } = await worked({
      context: {
        summarize: (_text, _signal, what, keep) => {
          asked.push([what, keep]);
          return "In short.";
        },
      },
    });
    await agent.compact({ keep: "the names" });
    expect(asked).toEqual([["turns", "the names"]]);
    await agent.prompt("Again");
    expect(textOf(model.calls.at(-1)?.messages[1] ?? { content: "" })).toMatch(
      /^Summary of earlier turns:\n\nIn short\./,
    );
  });

  it("reaches the sink before the agent has it, and one that fails leaves all as it was", async () => {
    let isFull = false;
    const seen: AgentEvent["type"][] = [];
    const { agent } = await worked({
      sink: ({ type }) => {
        if (isFull) throw new Error("The disk is full.");
        seen.push(type);
      },
    });
    isFull = true;
    await expect(agent.compact()).rejects.toThrow("The disk is full.");
    expect(agent.state.compaction).toBeUndefined();
    isFull = false;
    await agent.compact();
    expect(seen.at(-1)).toBe("compaction");
    expect(agent.state.compaction?.to).toBeGreaterThan(1);
  });

  it("gives nothing where there is nothing to gain, and does nothing then", async () => {
    const { agent, recorder } = await worked({}, ["Hello"]);
    expect(await agent.compact()).toBeUndefined();
    expect(recorder.events).toEqual([]);
    expect(agent.state.compaction).toBeUndefined();
    const other = await worked();
    await other.agent.compact();
    expect(await other.agent.compact()).toBeUndefined();
  });

  it("gives nothing where nothing was said yet", async () => {
    const model = scriptedModel([]);
    const agent = new Agent({ protocol: model, model: model.model });
    expect(await agent.compact()).toBeUndefined();
  });

  it("counts as a run: nothing else starts meanwhile, and it starts while nothing else runs", async () => {
    const summary = later<string>();
    const { agent } = await worked({ context: { summarize: () => summary.promise } });
    const compacting = agent.compact();
    expect(agent.isRunning).toBe(true);
    await expect(agent.prompt("Again")).rejects.toThrow("the agent is running");
    await expect(agent.compact()).rejects.toThrow("Cannot compact: the agent is running");
    summary.resolve("In short.");
    await compacting;
    expect(agent.isRunning).toBe(false);
  });

  it.each(["abort()", "its signal"])("is stopped by %s, and leaves all as it was", async (by) => {
    const { agent, recorder } = await worked({ context: { summarize: () => never() } });
    const controller = new AbortController();
    const compacting = agent.compact({ signal: controller.signal });
    if (by === "abort()") agent.abort();
    else controller.abort();
    await expect(compacting).rejects.toThrow("canceled");
    expect(agent.isRunning).toBe(false);
    expect(agent.state.compaction).toBeUndefined();
    expect(recorder.events).toEqual([]);
  });

  it("is refused by beforeCompaction, which learns that it was asked for", async () => {
    const triggers: string[] = [];
    const { agent } = await worked({
      context: {
        beforeCompaction: (_signal, trigger) => {
          triggers.push(trigger);
          return false;
        },
      },
    });
    await expect(agent.compact()).rejects.toThrow("beforeCompaction has put it off");
    expect(triggers).toEqual(["manual"]);
    expect(agent.state.compaction).toBeUndefined();
  });

  it("is built on the one before", async () => {
    const asked: string[] = [];
    const { agent } = await worked(
      {
        context: {
          keepTurns: 1,
          summarize: (text) => {
            asked.push(text);
            return `sum ${asked.length}`;
          },
        },
      },
      [...steps(6), "Done", ...steps(6), "Done again"],
    );
    await agent.compact();
    await agent.prompt("Go on");
    await agent.compact();
    expect(asked[1]).toMatch(/^user: Summary of earlier turns:\n\nsum 1/);
    expect(agent.state.compaction?.from).toBe(1);
  });
});
