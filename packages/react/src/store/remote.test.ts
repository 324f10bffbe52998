import type { ScriptAnswer } from "@gyre/ai/testing";
import { call, say, stall, think } from "@gyre/ai/testing";
import { RemoteAgent } from "@gyre/server/client";
import { describe, expect, it, vi } from "vitest";
import { createRemoteWorld, createTestTool } from "../../../server/src/testing/remote-world.ts";
import { makeRandom } from "../../../server/src/testing/random-runs.ts";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { createManualFrames } from "../testing/frames.ts";
import { type AgentSnapshot, type AgentStore, createAgentStore } from "./agent-store.ts";

/** Draws frames until a snapshot is as it should be. */
async function waitFor(
  store: AgentStore,
  frames: ReturnType<typeof createManualFrames>,
  check: (snapshot: AgentSnapshot) => void,
): Promise<void> {
  await vi.waitFor(() => {
    frames.draw();
    check(store.getSnapshot());
  });
}

describe("a session on a server", () => {
  it("is opened when the store is first used, and left with its last listener", async () => {
    const world = createRemoteWorld({ script: ["Green.", "Black."] });
    const frames = createManualFrames();
    const { client, connections } = world.client();
    const store = createAgentStore({ connect: client }, frames);
    expect(store.getSnapshot()).toMatchObject({ connection: "connecting", session: undefined });
    await Promise.resolve();
    expect(connections()).toBe(0);
    const leave = store.subscribe(() => {});
    leave();
    let leaveAgain = store.subscribe(() => {});
    await waitFor(store, frames, ({ connection, session }) => {
      expect([connection, session]).toEqual(["connected", "s_1"]);
    });
    // As StrictMode does: the session is not left and joined again.
    const close = vi.spyOn(RemoteAgent.prototype, "close");
    leaveAgain();
    leaveAgain = store.subscribe(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    expect(close).not.toHaveBeenCalled();
    close.mockRestore();
    await store.prompt("Which tea?");
    await waitFor(store, frames, ({ messages, status }) => {
      expect(messages.map(({ state }) => state)).toEqual(["done", "done"]);
      expect(status).toBe("idle");
    });
    leaveAgain();
    // Back after it had left, it joins the session that it had made.
    await new Promise((resolve) => setImmediate(resolve));
    store.subscribe(() => {});
    await waitFor(store, frames, ({ connection, messages }) => {
      expect([connection, messages.length]).toEqual(["connected", 2]);
    });
    expect(world.host.agents).toHaveLength(1);
    await store.close();
    frames.draw();
    expect(store.getSnapshot().connection).toBe("closed");
    await store.prompt("And now?");
    frames.draw();
    expect(store.getSnapshot().messages.at(-1)).toMatchObject({
      state: "failed",
      error: "The store was closed.",
    });
    expect(world.errors).toEqual([]);
  });

  it("is open for what is asked without a listener", async () => {
    const world = createRemoteWorld({ script: ["Green.", "Black."] });
    const frames = createManualFrames();
    const store = createAgentStore({ connect: world.client().client }, frames);
    await store.prompt("Which tea?");
    frames.draw();
    expect(store.getSnapshot()).toMatchObject({ connection: "connected", session: "s_1" });
    expect(store.getSnapshot().messages).toHaveLength(2);
    // A page that is gone sends what it was about to send.
    store.subscribe(() => {})();
    await new Promise((resolve) => setImmediate(resolve));
    await store.prompt("And else?");
    await vi.waitFor(() => expect(world.host.agents[0]?.state.messages).toHaveLength(4));
    frames.draw();
    expect(store.getSnapshot().messages).toHaveLength(4);
    expect(store.getSnapshot().connection).toBe("connecting");
  });

  it("says that it cannot be opened", async () => {
    const frames = createManualFrames();
    const connect = createRemoteWorld().client().client;
    const store = createAgentStore({ connect, session: "no-such" }, frames);
    store.subscribe(() => {});
    await waitFor(store, frames, ({ connection, error, status }) => {
      expect(connection).toBe("closed");
      expect(error).toContain("no-such");
      expect(status).toBe("failed");
    });
  });

  it("shows prompts and queued messages once, before and after the server has them", async () => {
    const world = createRemoteWorld({ script: [[say("Well"), stall()], "Then."] });
    const frames = createManualFrames();
    const { client, hold, release, cut } = world.client();
    const store = createAgentStore({ connect: client }, frames);
    const seen: string[][] = [];
    store.subscribe(({ messages, queue }) => {
      const users = messages.filter(({ role }) => role === "user");
      seen.push(
        [...users.flatMap(({ parts }) => parts), ...queue].map((part) => JSON.stringify(part)),
      );
    });
    await waitFor(store, frames, ({ connection }) => expect(connection).toBe("connected"));
    const run = store.prompt("Go.");
    await waitFor(store, frames, ({ messages }) => {
      expect(messages.map(({ state }) => state)).toEqual(["done", "streaming"]);
    });
    hold();
    cut();
    await waitFor(store, frames, ({ connection }) => expect(connection).toBe("reconnecting"));
    const queued = store.prompt("And then?");
    await waitFor(store, frames, ({ queue }) => {
      expect(queue).toMatchObject([{ text: "And then?", state: "sending" }]);
    });
    release();
    await queued;
    await waitFor(store, frames, ({ queue, connection }) => {
      expect(connection).toBe("connected");
      expect(queue).toMatchObject([{ text: "And then?", state: "queued" }]);
    });
    const [item] = store.getSnapshot().queue;
    expect(await store.takeBack(item?.id ?? "")).toBe("And then?");
    await waitFor(store, frames, ({ queue }) => expect(queue).toEqual([]));
    await store.steer("Stop that.");
    await store.abort();
    await run;
    await waitFor(store, frames, ({ status }) => expect(status).toBe("idle"));
    // At no moment is anything there twice.
    for (const texts of seen) {
      for (const text of ["Go.", "And then?", "Stop that."]) {
        expect(texts.filter((one) => one.includes(text)).length).toBeLessThanOrEqual(1);
      }
    }
    expect(world.errors).toEqual([]);
  });

  it("a prompt that another client was faster than is queued, and shown once", async () => {
    const world = createRemoteWorld({ script: [[say("Well"), stall()], "Then."] });
    const frames = createManualFrames();
    const one = createAgentStore({ connect: world.client().client }, frames);
    one.subscribe(() => {});
    await waitFor(one, frames, ({ session }) => expect(session).toBe("s_1"));
    const session = one.getSnapshot().session;
    const two = createAgentStore({ connect: world.client().client, session }, frames);
    two.subscribe(() => {});
    await waitFor(two, frames, ({ connection }) => expect(connection).toBe("connected"));
    const first = one.prompt("First.");
    await two.prompt("Second.");
    for (const store of [one, two]) {
      await waitFor(store, frames, ({ messages, queue }) => {
        expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
        expect(queue).toMatchObject([{ queue: "followUp", text: "Second.", state: "queued" }]);
      });
    }
    // What one client takes back is gone at the other, too.
    const [item] = two.getSnapshot().queue;
    expect(await two.takeBack(item?.id ?? "")).toBe("Second.");
    for (const store of [one, two]) {
      await expect
        .poll(() => {
          frames.draw();
          return store.getSnapshot().queue;
        })
        .toEqual([]);
    }
    await two.abort();
    await first;
  });

  it("answers calls that wait, with what exactly was asked about", async () => {
    const asks = createTestTool("asks", () => "paid");
    const script: ScriptAnswer[] = [call("asks", {}, "c1"), "Thanks."];
    const world = createRemoteWorld({ script, tools: [asks] });
    const frames = createManualFrames();
    const store = createAgentStore({ connect: world.client().client }, frames);
    store.subscribe(() => {});
    await store.prompt("Pay.");
    await waitFor(store, frames, ({ status }) => expect(status).toBe("waiting"));
    await Promise.all([store.approve("c1"), store.approve("c1")]);
    await waitFor(store, frames, ({ status, error, messages }) => {
      expect([status, error]).toEqual(["idle", undefined]);
      expect(messages[1]?.parts[0]).toMatchObject({ state: "output-available", output: "paid" });
    });
  });
});

/** Connections that break, one after the other; `GYRE_SEED` to see the same ones again. */
const ROUNDS = countCases(15, 300);

it(
  "connections that break by seed: what is shown at the end is what the session has",
  {
    tags: "long",
    timeout: 300_000,
  },
  async () => {
    const seed = pickSeed();
    console.log(`GYRE_SEED=${seed}`);
    let cuts = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const random = makeRandom(seed + round);
      const upTo = (most: number): number => Math.floor(random() * most);
      const answer = (): ScriptAnswer => ({
        parts: [
          ...(random() < 0.3 ? [think("Hm, let me see.")] : []),
          say("It costs 3 euros, or 4. ".repeat(1 + upTo(4))),
          ...(random() < 0.6 ? [call("look", { at: "tea".repeat(upTo(5)) })] : []),
        ],
        chunkSize: 1 + upTo(6),
      });
      const look = createTestTool("look", () => ({ seen: upTo(9) }));
      let turns = 0;
      const script = (): ScriptAnswer => (turns++ % 3 === 2 ? "Done." : answer());
      const world = createRemoteWorld({ script, tools: [look] });
      const limits = Array.from({ length: 8 }, () => 4 + upTo(40));
      const frames = createManualFrames();
      const client = world.client(limits);
      const store = createAgentStore({ connect: client.client }, frames);
      let notified = 0;
      store.subscribe(() => notified++);
      const draw = setInterval(() => frames.draw(), 1);
      for (let prompt = 0; prompt < 3; prompt++) await store.prompt(`Prompt ${prompt}.`);
      clearInterval(draw);
      const [agent] = world.host.agents;
      if (!agent) throw new Error("There is no session.");
      const expected = createAgentStore(agent, frames).getSnapshot();
      await waitFor(store, frames, (snapshot) => {
        expect(snapshot).toEqual({ ...expected, session: "s_1" });
      });
      expect(notified - 1).toBeLessThanOrEqual(frames.count);
      expect(world.host.agents).toHaveLength(1);
      cuts += client.connections() - 1;
      await store.close();
    }
    expect(cuts).toBeGreaterThan(ROUNDS);
    console.log(`${ROUNDS} conversations, ${cuts} broken connections`);
  },
);
