import { execFileSync } from "node:child_process";
import { agentLoop, type AgentMessage, type AgentTool } from "@gyre/agent";
import type { StreamFn } from "@gyre/ai";
import type { FloorTool, RawEvent } from "./floor.ts";
import {
  type Case,
  createGrowth,
  createRatio,
  formatMs,
  formatShare,
  type Line,
} from "../measure/lines.ts";
import { collect, interleaved, measureScript, median } from "../measure/measure.ts";
import { makeMessages } from "./history.ts";
import { benchModel, instant, instantSource, textSource, wire } from "./models.ts";
import {
  addTool,
  callAdd,
  createArgumentsWork,
  createTextWork,
  createTurnsWork,
  expect,
  floorAdd,
  type Responses,
  runFloorAtOnce,
  runGyre,
  startGyre,
  user,
} from "./works.ts";

const ROUNDS = 7;
const IMPORT_ROUNDS = 15;

const text: Case = {
  name: "text",
  async run() {
    const many = 100_000;
    const times = await interleaved(ROUNDS, createTextWork(many));
    // Many short runs, so that a run of 1,000 deltas is long enough to be measured.
    const few = 1_000;
    const growth = await interleaved(ROUNDS, {
      floor: async () => {
        for (let i = 0; i < many / few; i++) await runGyre(wire(() => textSource(few)));
      },
      gyre: () => runGyre(wire(() => textSource(many))),
    });
    const show = formatShare(many);
    return [
      createRatio("100,000 text deltas", times, show, 1.5),
      createGrowth(
        "growth per delta, 1,000 to 100,000",
        show(growth.gyre),
        growth.gyre / growth.floor,
      ),
    ];
  },
};

const args: Case = {
  name: "arguments",
  async run() {
    const small = await interleaved(ROUNDS, createArgumentsWork(800_000));
    const large = await interleaved(3, createArgumentsWork(4_000_000));
    const show = formatMs(0);
    const growth = large.gyre / 5 / small.gyre;
    return [
      createRatio("800 KB of arguments in 16-byte deltas", small, show, 2),
      createGrowth("growth per byte, 800 KB to 4 MB", show(large.gyre), growth),
    ];
  },
};

const turns: Case = {
  name: "turns",
  async run() {
    const many = 1_000;
    const times = await interleaved(15, createTurnsWork(many));
    const few = 10;
    const growth = await interleaved(25, {
      floor: async () => {
        for (let i = 0; i < many / few; i++) await runGyre(instant(callAdd(few)), [addTool]);
      },
      gyre: () => runGyre(instant(callAdd(many)), [addTool]),
    });
    const show = formatShare(many);
    return [
      createRatio("1,000 turns, a tool call each", times, show, 4),
      // A run of 10 turns has 11 responses, so its turns look a little dearer than they are.
      createGrowth("growth per turn, 10 to 1,000", show(growth.gyre), growth.gyre / growth.floor),
    ];
  },
};

const tools: Case = {
  name: "tools",
  async run() {
    const count = 100;
    const wait: FloorTool = () => new Promise((resolve) => setTimeout(resolve, 10, "ok"));
    const calls = Array.from({ length: count }, (_, i): RawEvent[] => [
      { type: "call", id: `c${i}`, name: "wait" },
      { type: "arguments", delta: `{"i":${i}}` },
    ]).flat();
    const responses: Responses = (messages) =>
      messages > 1
        ? [{ type: "text", delta: "done" }, { type: "end" }]
        : [...calls, { type: "end" }];
    const waitTool: AgentTool = {
      name: "wait",
      description: "Waits",
      parameters: { type: "object", properties: { i: { type: "number" } } },
      concurrent: true,
      execute: wait,
    };
    const wall = { floor: [] as number[], gyre: [] as number[] };
    for (let round = -200; round < 51; round++) {
      let before = performance.now();
      await runFloorAtOnce(responses, { wait });
      if (round >= 0) wall.floor.push(performance.now() - before);
      before = performance.now();
      await runGyre(instant(responses), [waitTool], {
        maxToolConcurrency: Number.POSITIVE_INFINITY,
      });
      if (round >= 0) wall.gyre.push(performance.now() - before);
    }
    const times = { floor: median(wall.floor), gyre: median(wall.gyre) };
    return [createRatio("100 tools of 10 ms in one turn, wall", times, formatMs(2), 1.1)];
  },
};

/** A model for three turns of 50 deltas: two with a call, one without. */
function chatty(messages: number): RawEvent[] {
  const made = (messages - 1) / 2;
  const events = Array.from({ length: 50 }, (): RawEvent => ({ type: "text", delta: "word " }));
  if (made < 2) {
    events.push({ type: "call", id: `c${made}`, name: "add" });
    events.push({ type: "arguments", delta: `{"a":${made},"b":1}` });
  }
  events.push({ type: "end" });
  return events;
}

const AGENTS = 1_000;

const agents: Case = {
  name: "agents",
  async run() {
    const runAll = async (side: string, run: () => Promise<number>): Promise<void> => {
      for (const deltas of await Promise.all(Array.from({ length: AGENTS }, run))) {
        expect(`${side} deltas`, deltas, 152);
      }
    };
    const floor = (): Promise<void> =>
      runAll("floor", () => runFloorAtOnce(chatty, { add: floorAdd }));
    const times = await interleaved(ROUNDS, {
      floor,
      gyre: () => runAll("gyre", () => runGyre(instant(chatty), [addTool])),
    });
    // The same where a delta comes at a time: our wire then reads a generator, as the floor does.
    const oneByOne = wire((messages) => instantSource(chatty(messages)));
    const paced = await interleaved(ROUNDS, {
      floor,
      gyre: () => runAll("gyre", () => runGyre(oneByOne, [addTool])),
    });
    const what = "1,000 agents, 3 turns of 50 deltas, emitted at once";
    const memory = { floor: agentMemory("floor"), gyre: agentMemory("gyre") };
    const kb = (value: number): string => `${value.toFixed(0)} KB`;
    return [
      createRatio(what, times, formatMs(0), 1.6),
      createRatio("the same, one delta at a time", paced, formatMs(0), 1.6),
      {
        what: "memory an agent, at the peak",
        floor: kb(memory.floor),
        gyre: kb(memory.gyre),
        measured: memory.gyre,
        limit: 100,
        unit: " KB",
      },
    ];
  },
};

/** Growth of the resident set at its peak, in a process of its own. */
function agentMemory(which: string): number {
  const args = [...process.execArgv, process.argv[1] ?? "", "--memory", which];
  const measure = (): number => Number(execFileSync(process.execPath, args, { encoding: "utf8" }));
  return median(Array.from({ length: 3 }, measure));
}

/** KB an agent by which the process grew while a thousand ran at once. */
export async function measureMemory(which: string): Promise<number> {
  const runOne = (): Promise<number> =>
    which === "floor"
      ? runFloorAtOnce(chatty, { add: floorAdd })
      : runGyre(instant(chatty), [addTool]);
  // Compiled before it counts: the compiler takes memory of its own.
  for (let i = 0; i < 2_000; i++) await runOne();
  collect();
  const before = process.memoryUsage.rss();
  await Promise.all(Array.from({ length: AGENTS }, runOne));
  return (process.resourceUsage().maxRSS * 1024 - before) / 1024 / AGENTS;
}

/** From the call to the moment when the model is asked. */
async function callToModel(messages: readonly AgentMessage[]): Promise<number> {
  let asked = 0;
  const inner = wire(() => textSource(1));
  const streamFn: StreamFn = (...given) => {
    asked = performance.now();
    return inner(...given);
  };
  const before = performance.now();
  await agentLoop([user], { messages }, { model: benchModel }, undefined, streamFn).result();
  return asked - before;
}

const history: Case = {
  name: "history",
  async run() {
    const messages = Array.from({ length: 2_500 }, (_, nth) => makeMessages(nth, "ok")).flat();
    const cold = await callToModel(messages);
    for (let i = 0; i < 500; i++) await callToModel(messages);
    const warm: number[] = [];
    for (let i = 0; i < 200; i++) warm.push(await callToModel(messages));
    return [
      {
        what: "call to model on 10,000 messages, seen before",
        gyre: `${median(warm).toFixed(3)} ms (first: ${cold.toFixed(1)} ms)`,
        measured: median(warm),
        limit: 0.2,
        unit: " ms",
      },
    ];
  },
};

const firstEvent: Case = {
  name: "first",
  async run() {
    const streamFn = wire(() => textSource(1));
    const samples: number[] = [];
    for (let i = 0; i < 6_000; i++) {
      const before = performance.now();
      const stream = startGyre(streamFn);
      const iterator = stream[Symbol.asyncIterator]();
      await iterator.next();
      if (i >= 3_000) samples.push(performance.now() - before);
      await stream.result();
    }
    return [
      {
        what: "first event after the call, warm",
        gyre: `${(median(samples) * 1000).toFixed(1)} us`,
        measured: median(samples) * 1000,
        limit: 12,
        unit: " us",
      },
    ];
  },
};

const slowConsumer: Case = {
  name: "slow",
  async run() {
    const deltas = 200_000;
    const delta = "word ";
    let flat = delta.repeat(deltas);
    flat = Buffer.from(flat).toString("latin1");
    collect();
    const withFlat = process.memoryUsage().heapUsed;
    const length = flat.length;
    flat = "";
    collect();
    const before = process.memoryUsage().heapUsed;
    const flatMb = (withFlat - before) / 1e6;
    const stream = startGyre(wire(() => textSource(deltas, delta)));
    let worst = 0;
    let seen = 0;
    let events = 0;
    for await (const event of stream) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") {
        seen += event.assistantMessageEvent.delta.length;
      }
      if (++events % 20 === 0) {
        collect();
        worst = Math.max(worst, process.memoryUsage().heapUsed - before);
      }
    }
    expect("characters", seen, length);
    return [
      {
        what: `slow consumer on 200,000 deltas (${events} events), heap above the flat text`,
        gyre: `${(worst / 1e6).toFixed(2)} MB, flat ${flatMb.toFixed(2)} MB`,
        measured: worst / 1e6 - flatMb,
        limit: 2,
        unit: " MB",
      },
    ];
  },
};

const importing: Case = {
  name: "import",
  run() {
    const code = `await import(${JSON.stringify(import.meta.resolve("@gyre/agent"))})`;
    return Promise.resolve([measureImport("importing @gyre/agent, CPU over bare node", code, 40)]);
  },
};

/** How much longer Node takes to run `code` than to run nothing. */
export function measureImport(what: string, code: string, limit: number): Line {
  const bare: number[] = [];
  const ours: number[] = [];
  for (let round = 0; round < IMPORT_ROUNDS; round++) {
    bare.push(measureScript(""));
    ours.push(measureScript(code));
  }
  const [floor, gyre] = [median(bare), median(ours)];
  const show = formatMs(0);
  return { what, floor: show(floor), gyre: show(gyre), measured: gyre - floor, limit, unit: " ms" };
}

export const cases: readonly Case[] = [
  text,
  args,
  turns,
  tools,
  agents,
  history,
  firstEvent,
  slowConsumer,
  importing,
];
