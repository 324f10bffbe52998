import { Agent } from "@gyre/agent";
import { call, fail, say, scriptedModel, stall } from "@gyre/ai/testing";
import { act, createElement as h, type ReactNode, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { describe, expect, expectTypeOf, it, vi } from "vitest";
import { z } from "zod";
import { createRunStore } from "../store/run-store.ts";
import { createManualFrames } from "../testing/frames.ts";
import { createContainer, usePage } from "../testing/page.ts";
import { useRun, type UseRun } from "./use-run.ts";

usePage();

const Recipe = z.object({ title: z.string(), steps: z.array(z.string()) });

function createAgent(script: Parameters<typeof scriptedModel>[0], chunkSize = 3): Agent {
  const model = scriptedModel(script, { chunkSize, betweenMs: 1 });
  return new Agent({ model: model.model, protocol: model, retry: { maxRetries: 0 } });
}

describe("useRun", () => {
  it("shows the text as it comes, and aborts a run that the page leaves", async () => {
    const agent = createAgent([[say("Green."), stall()]]);
    const frames = createManualFrames();
    let run: UseRun<string, undefined> | undefined;
    function Page(): ReactNode {
      run = useRun((prompt: string, signal) => agent.run(prompt, { signal }), frames);
      return `${run.status}: ${run.text}`;
    }
    const container = createContainer();
    const root = createRoot(container);
    await act(async () => root.render(h(StrictMode, null, h(Page))));
    expect(container.textContent).toBe("idle: ");
    void run?.start("Which tea?");
    await vi.waitFor(async () => {
      await act(async () => void frames.draw());
      expect(container.textContent).toBe("running: Green.");
    });
    await act(async () => root.unmount());
    await agent.waitForIdle();
    expect(agent.state.messages.at(-1)).toMatchObject({ stopReason: "aborted" });
  });
});

describe("a run store", () => {
  it("has the answer of a schema as far as it has come, and the one that fits at the end", async () => {
    const answer = { title: "Tea", steps: ["Boil water.", "Wait."] };
    const agent = createAgent([call("final_answer", answer)]);
    const store = createRunStore(
      (prompt: string, signal) => agent.run(prompt, { output: Recipe, signal }),
      {
        schedule: (flush) => {
          flush();
          return () => {};
        },
      },
    );
    expectTypeOf(store.getSnapshot().output).toEqualTypeOf<z.infer<typeof Recipe> | undefined>();
    const seen: { snapshot: unknown; text: string }[] = [];
    store.subscribe((snapshot) => seen.push({ snapshot, text: JSON.stringify(snapshot) }));
    await store.start("A recipe.");
    expect(store.getSnapshot()).toMatchObject({ status: "done", output: answer, partial: answer });
    // What was shown stays as it was, though the answer grows in place.
    expect(seen.map(({ snapshot }) => JSON.stringify(snapshot))).toEqual(
      seen.map(({ text }) => text),
    );
    const lengths = seen.slice(1, -1).map(({ text }) => text.length);
    expect(lengths).toEqual(lengths.toSorted((a, b) => a - b));
    expect(new Set(lengths).size).toBeGreaterThan(3);
  });

  it("says why a run failed, also where it did not start and where the answer does not fit", async () => {
    const agent = createAgent([fail("Full.", { kind: "overloaded" }), "Green."]);
    const frames = createManualFrames();
    const store = createRunStore(
      (prompt: string) =>
        prompt === "" ? Promise.reject(new Error("No prompt.")) : agent.run(prompt),
      frames,
    );
    const start = async (prompt: string): Promise<unknown> => {
      await store.start(prompt);
      frames.draw();
      const { status, text, error } = store.getSnapshot();
      return { status, text, error };
    };
    expect(await start("")).toEqual({ status: "failed", text: "", error: "No prompt." });
    expect(await start("Tea?")).toEqual({ status: "failed", text: "", error: "Full." });
    expect(await start("Tea?")).toEqual({ status: "done", text: "Green.", error: undefined });
    const typed = createRunStore(
      (prompt: string) => createAgent(() => "No JSON.").run(prompt, { output: Recipe }),
      frames,
    );
    await typed.start("A recipe.");
    frames.draw();
    expect(typed.getSnapshot()).toMatchObject({ status: "failed", output: undefined });
    expect(typed.getSnapshot().error).not.toBe("");
  });

  it("shows the run that was started last", async () => {
    const agents = [createAgent([[say("Old."), stall()]]), createAgent(["New."])];
    const frames = createManualFrames();
    const store = createRunStore((at: number, signal) => {
      const agent = agents[at];
      if (!agent) throw new Error("There is no such agent.");
      return agent.run("Tea?", { signal });
    }, frames);
    const old = store.start(0);
    await vi.waitFor(() => {
      frames.draw();
      expect(store.getSnapshot().text).toBe("Old.");
    });
    await store.start(1);
    await old;
    frames.draw();
    expect(store.getSnapshot()).toMatchObject({ status: "done", text: "New." });
  });
});
