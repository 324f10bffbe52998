import { Agent } from "@gyre/agent";
import { call, say, type ScriptAnswer, scriptedModel } from "@gyre/ai/testing";
import { expect, it } from "vitest";
import { makeRandom } from "../../../server/src/testing/random-runs.ts";
import { createRemoteWorld, createTestTool } from "../../../server/src/testing/remote-world.ts";
import { countCases, pickSeed } from "../../../../tests/support/cases.ts";
import { createManualFrames, type ManualFrames } from "../testing/frames.ts";
import { type AgentStore, createAgentStore } from "./agent-store.ts";

const ROUNDS = countCases(30, 300);
const ACTIONS = 25;

interface World {
  store: AgentStore;
  frames: ManualFrames;
  /** Breaks the connection, where there is one. */
  cut?: () => void;
}

function answerAtRandom(random: () => number): ScriptAnswer {
  const parts = [say("It costs 3 euros. ".repeat(1 + Math.floor(random() * 3)))];
  return {
    parts: random() < 0.4 ? [...parts, call("look")] : parts,
    chunkSize: 1 + Math.floor(random() * 9),
    betweenMs: random() < 0.5 ? 0 : 1,
  };
}

function createLocal(random: () => number): World {
  const script = scriptedModel(() => answerAtRandom(random));
  const tools = [createTestTool("look")];
  const agent = new Agent({
    model: script.model,
    protocol: script,
    tools,
    limits: { maxTurns: 5 },
  });
  const frames = createManualFrames();
  return { store: createAgentStore(agent, frames), frames };
}

function createRemote(random: () => number): World {
  const tools = [createTestTool("look")];
  const script = (): ScriptAnswer => answerAtRandom(random);
  const world = createRemoteWorld({ script, tools, agent: { limits: { maxTurns: 5 } } });
  const frames = createManualFrames();
  const { client, cut } = world.client();
  return { store: createAgentStore({ connect: client }, frames), frames, cut };
}

/** Uses a store at random. At each frame all that the user has sent is there once. */
async function playAtRandom(random: () => number, { store, frames, cut }: World): Promise<void> {
  const upTo = (most: number): number => Math.floor(random() * most);
  /** What has to be shown, and what may be gone, as it is being taken back. */
  const sent = new Set<string>();
  const leaving = new Set<string>();
  const check = (): void => {
    frames.draw();
    const { messages, queue } = store.getSnapshot();
    const users = messages.filter(({ role }) => role === "user");
    const texts = users.flatMap(({ parts }) =>
      parts.map((part) => (part.type === "text" ? part.text : "")),
    );
    const shown = [...texts, ...queue.map(({ text }) => text)];
    const doubled = shown.filter((text, at) => shown.indexOf(text) !== at);
    const lost = [...sent].filter((text) => !shown.includes(text) && !leaving.has(text));
    expect({ doubled, lost }).toEqual({ doubled: [], lost: [] });
    expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
  };
  const pass = async (): Promise<void> => {
    for (let left = upTo(6); left > 0; left--) {
      if (random() < 0.5) await Promise.resolve();
      else await new Promise((resolve) => setImmediate(resolve));
      check();
    }
  };
  const asked: Promise<unknown>[] = [];
  store.subscribe(() => {});
  for (let action = 0; action < ACTIONS; action++) {
    const chance = random();
    if (chance < 0.5) {
      const text = `Prompt ${action}.`;
      sent.add(text);
      asked.push(random() < 0.3 ? store.steer(text) : store.prompt(text));
    } else if (chance < 0.6) asked.push(store.abort());
    else if (chance < 0.8) cut?.();
    else {
      const { queue } = store.getSnapshot();
      const known = queue.filter(({ text }) => !leaving.has(text));
      const item = known[upTo(known.length)];
      if (item) {
        leaving.add(item.text);
        const back = store.takeBack(item.id).then((text) => {
          // It is not there any more: it was delivered, and has to be shown.
          if (text === undefined) leaving.delete(item.text);
          else sent.delete(item.text);
        });
        asked.push(back);
      }
    }
    check();
    await pass();
  }
  await Promise.all(asked);
  await expect
    .poll(() => {
      check();
      return store.getSnapshot().status;
    })
    .toBe("idle");
  check();
  expect(store.getSnapshot().error).toBe(undefined);
  await store.close();
}

it.each([
  ["a local agent", createLocal],
  ["a session over connections that break", createRemote],
])(
  "%s: what is sent is shown once, at every frame",
  { tags: "long", timeout: 600_000 },
  async (_, create) => {
    const seed = pickSeed();
    const failed: unknown[] = [];
    for (let round = 0; round < ROUNDS && failed.length === 0; round++) {
      const random = makeRandom(seed + round);
      await playAtRandom(random, create(random)).catch((error: unknown) => {
        failed.push(`GYRE_SEED=${seed + round}`, error);
      });
    }
    expect(failed).toEqual([]);
    console.log(`${ROUNDS} rounds: GYRE_SEED=${seed}`);
  },
);
