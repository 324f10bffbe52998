import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { someCases } from "../../support/cases.ts";
import { behave, BEHAVIORS } from "./behaviors.ts";
import floor from "./floor/peer.ts";
import gyre from "./gyre/peer.ts";
import type { Peer, Plain } from "./peer.ts";
import { SPEEDS } from "./speed.ts";
import { adding, addTool, streamParts, callParts, longHistory, textParts } from "./works.ts";

// Some behaviors look at the heap.
setFlagsFromString("--expose-gc");
Object.assign(globalThis, { gc: runInNewContext("gc") as unknown });

/** Small enough for a test; the others take seconds or a server. */
const SIZES: Readonly<Record<string, number>> = {
  text: 100,
  arguments: 1_000,
  turns: 3,
  tools: 5,
  history: 40,
  first: 1,
};

const OURS = [
  ["the floor", floor],
  ["Gyre", gyre],
] as const;

/** Without the tool's name, which a message need not have. */
const bare = (messages: readonly Plain[]): object[] =>
  messages.map((message) => ({ ...message, name: undefined }));

describe.each(OURS)("%s", (_, peer) => {
  it("hands every delta on and keeps the whole conversation", async () => {
    const outcome = await peer.run({ answer: adding(2, 3), tools: [addTool] });
    expect(outcome).toMatchObject({ textDeltas: 9, textChars: 45, argumentDeltas: 2 });
    expect(outcome).not.toHaveProperty("error");
    const turn = (nth: number): Plain[] => [
      {
        role: "assistant",
        text: `${nth}    `.repeat(3),
        calls: [{ id: `c${nth}`, name: "add", input: { a: nth, b: 1 } }],
      },
      { role: "tool", text: String(nth + 1), answers: `c${nth}` },
    ];
    expect(bare(outcome.messages)).toEqual([
      { role: "user", text: "go" },
      ...turn(0),
      ...turn(1),
      { role: "assistant", text: "2    ".repeat(3) },
    ]);
  });

  it("goes on from a history, which it leaves as it was", async () => {
    const history = longHistory(8);
    const outcome = await peer.run({ answer: () => streamParts(textParts(1)), history });
    expect(history).toEqual(longHistory(8));
    expect(bare(outcome.messages)).toEqual([
      ...bare(history),
      { role: "user", text: "go" },
      { role: "assistant", text: "word " },
    ]);
  });

  it("asks the model from 0 on in every run", async () => {
    const asked: number[] = [];
    const model = adding(2);
    const answer = (nth: number): ReturnType<typeof model> => {
      asked.push(nth);
      return model(nth);
    };
    await peer.run({ answer, tools: [addTool] });
    await peer.run({ answer, tools: [addTool] });
    expect(asked).toEqual([0, 1, 2, 0, 1, 2]);
  });

  it("waits for the consumer before it hands the next event on", async () => {
    let [inside, most, events] = [0, 0, 0];
    await peer.run({
      answer: () => streamParts(textParts(10)),
      event: async () => {
        most = Math.max(most, ++inside);
        events++;
        await new Promise((resolve) => setImmediate(resolve));
        inside--;
      },
    });
    expect(events).toBeGreaterThanOrEqual(10);
    expect(most).toBe(1);
  });

  it("runs the tools of a turn at once, and has their results in the order of the calls", async () => {
    let [running, most] = [0, 0];
    const calls = [2, 1, 0].flatMap((i) => [...callParts(`c${i}`, "wait", `{"i":${i}}`)]);
    const outcome = await peer.run({
      answer: (nth) => streamParts(nth === 0 ? calls : textParts(1)),
      tools: [
        {
          name: "wait",
          description: "Waits",
          parameters: { i: "number" },
          run: async ({ i }) => {
            most = Math.max(most, ++running);
            await new Promise((resolve) => setTimeout(resolve, 5 * Number(i)));
            running--;
            return `waited ${String(i)}`;
          },
        },
      ],
    });
    expect(most).toBe(3);
    const results = outcome.messages.filter(({ role }) => role === "tool");
    expect(results.map(({ text }) => text)).toEqual(["waited 2", "waited 1", "waited 0"]);
  });

  it("keeps an agent that did its work", async () => {
    let asked = 0;
    const answer = adding(1, 3);
    const agent = await peer.idle?.({
      answer: (nth) => {
        asked++;
        return answer(nth);
      },
      tools: [addTool],
    });
    expect(agent).toBeDefined();
    expect(asked).toBe(2);
  });

  it.each(Object.entries(SIZES))("does the work of %s, %d of it", async (name, size) => {
    const speed = SPEEDS.find((one) => one.name === name);
    const sample = await speed?.prepare(peer, size, { origin: "" })?.();
    const keys = speed?.rows(size).map(({ key }) => key) ?? [];
    expect(keys).not.toEqual([]);
    for (const key of keys) expect(sample?.[key]).toBeGreaterThanOrEqual(0);
  });
});

it("a library that loses some of the work is not measured", async () => {
  const losing: Peer = {
    ...floor,
    run: async (work) => {
      const outcome = await floor.run(work);
      return { ...outcome, textChars: outcome.textChars - 1, messages: [] };
    },
  };
  for (const name of ["text", "arguments", "turns", "tools"]) {
    const speed = SPEEDS.find((one) => one.name === name);
    const taken = speed?.prepare(losing, SIZES[name] ?? 1, { origin: "" })?.();
    await expect(taken).rejects.toThrow("Not what was to be measured: ");
  }
});

it("Gyre hands the signal on to a tool, and reports to a listener and a hook what happens", async () => {
  const { signal } = new AbortController();
  const reported = new Set<string>();
  let [hooked, isSignaled] = [0, false];
  await gyre.run({
    answer: adding(1),
    tools: [
      {
        ...addTool,
        run: (input, signal) => {
          isSignaled = signal instanceof AbortSignal;
          return addTool.run(input);
        },
      },
    ],
    signal,
    listener: (event) => reported.add(event),
    hook: () => hooked++,
  });
  expect(isSignaled).toBe(true);
  expect(hooked).toBe(2);
  expect([...reported]).toEqual(
    expect.arrayContaining(["agent_start", "message_update", "agent_end"]),
  );
});

/** What becomes of Gyre, and of the floor, which contains nothing and heeds no signal. */
const PROMISED: readonly (readonly [name: string, gyre: string, floor: string])[] = [
  ["ends-model", "ends", "Error: boom"],
  ["ends-stream", "ends", "Error: boom"],
  ["ends-tool", "ends", "Error: boom"],
  ["ends-listener", "ends", "ends"],
  ["ends-hook", "ends", "ends"],
  ["partial", "kept", "kept"],
  ["unanswered", "at once; answered", "when the tool is done; answered"],
  ["listener", "kept, run done", "kept, run done"],
  ["slow", "found out", "found out"],
  ["stall-guard", "noticed", "no setting"],
];

it("every behavior that does not just wait has its promise here", () => {
  const names = BEHAVIORS.filter(({ isWaiting }) => !isWaiting).map(({ name }) => name);
  expect(PROMISED.map(([name]) => name)).toEqual(names);
});

const promises = PROMISED.flatMap(([name, ours, least]) => {
  const title = BEHAVIORS.find((one) => one.name === name)?.title ?? name;
  return [
    ["Gyre", title, ours, gyre, name],
    ["the floor", title, least, floor, name],
  ] as const;
});

// Most of it is waiting, so all wait together.
it.concurrent.each(someCases(6, promises))(
  "%s, %s: %s",
  { tags: ["long"] },
  async (_who, _title, promised, peer, name) => {
    const found = await behave(peer, name).catch(String);
    // A heap is never twice the same.
    expect(found.replace(/^-?[\d.]+ MB, (?:all|[\d,]+) taken$/, "found out")).toBe(promised);
  },
);

it("a behavior that there is not is named", async () => {
  await expect(behave(floor, "singing")).rejects.toThrow('There is no behavior "singing".');
});
