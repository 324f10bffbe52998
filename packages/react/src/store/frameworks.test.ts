import { effect, effectScope, onScopeDispose, shallowRef } from "@vue/reactivity";
import { describe, expect, it } from "vitest";
import { createManualFrames } from "../testing/frames.ts";
import { PlayedAgent } from "../testing/played-agent.ts";
import { type AgentSnapshot, createAgentStore } from "./agent-store.ts";

/** What an effect of a framework reads, run after run. */
const STATUSES = ["idle", "running", "idle"];

function createWorld() {
  const agent = new PlayedAgent();
  const frames = createManualFrames();
  const store = createAgentStore(agent, frames);
  const run = (): void => {
    agent.play({ type: "agent_start" });
    frames.draw();
    const totals = { messages: [], turns: 1, usage: {}, undelivered: [], pending: [] };
    agent.play({ type: "agent_end", stop: "done", ...totals });
    frames.draw();
  };
  return { agent, store, run };
}

/** Leaves the store, and lets it notice. */
async function expectReleased(agent: PlayedAgent, leave: () => void): Promise<void> {
  expect(agent.listeners).toBe(1);
  leave();
  await Promise.resolve();
  expect(agent.listeners).toBe(0);
}

describe("the store in other frameworks", () => {
  it("Vue: effects run with each snapshot, until their scope is disposed of", async () => {
    const { agent, store, run } = createWorld();
    const seen: string[] = [];
    const scope = effectScope();
    scope.run(() => {
      const snapshot = shallowRef(store.getSnapshot());
      onScopeDispose(store.subscribe((newest) => (snapshot.value = newest)));
      effect(() => void seen.push(snapshot.value.status));
    });
    run();
    expect(seen).toEqual(STATUSES);
    await expectReleased(agent, () => scope.stop());
  });

  it("Solid: effects run with each snapshot, until their root is disposed of", async () => {
    // Node gets a build that renders on servers, in which effects do not run.
    const browser: typeof import("solid-js") = await import(
      new URL("solid.js", import.meta.resolve("solid-js")).href
    );
    const { agent, store, run } = createWorld();
    const seen: string[] = [];
    const leave = browser.createRoot((dispose) => {
      const snapshot = browser.from<AgentSnapshot>(store, store.getSnapshot());
      browser.createEffect(() => void seen.push(snapshot().status));
      return dispose;
    });
    run();
    expect(seen).toEqual(STATUSES);
    await expectReleased(agent, leave);
  });

  it("Svelte: it keeps the contract of a store: a value at once, and a function that ends it", async () => {
    const { agent, store, run } = createWorld();
    const seen: string[] = [];
    const leave = store.subscribe(({ status }) => seen.push(status));
    expect(seen).toEqual(["idle"]);
    run();
    expect(seen).toEqual(STATUSES);
    await expectReleased(agent, leave);
  });
});
