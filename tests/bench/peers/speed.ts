import { collect, cpuMs } from "../src/measure/measure.ts";
import { timed } from "./measure.ts";
import type { HttpWork, Outcome, Peer, Work } from "./peer.ts";
import { formatArguments } from "../src/library/raw.ts";
import { streamedChars } from "../src/library/stream-bodies.ts";
import {
  adding,
  addTool,
  streamParts,
  callParts,
  DELTA,
  longHistory,
  textParts,
  writeTool,
} from "./works.ts";

/** Figures of one sample, by the name of their row. */
export type Sample = Readonly<Record<string, number>>;

/** Takes one sample of a library. */
export type Take = () => Promise<Sample>;

export interface Speed {
  readonly name: string;
  /** How much of the work, smallest first; a library that is too slow is spared the rest. */
  readonly sizes: readonly number[];
  /** Each sample in a process of its own, because it measures memory or a start. */
  readonly isFresh?: boolean;
  /** Gets everything ready; nothing where the library has no such thing. */
  readonly prepare: (peer: Peer, size: number, setting: Setting) => Take | undefined;
  readonly rows: (size: number) => readonly Row[];
  /** Whether the exponent of its first row's growth with the size is fitted. */
  readonly grows?: boolean;
}

export interface Row {
  /** Of the figure in a sample. */
  readonly key: string;
  readonly title: string;
  readonly unit: "ms" | "us" | "KB";
}

/** Where a sample is taken. */
export interface Setting {
  /** The server of made-up streams. */
  readonly origin: string;
}

const cpuRow = (title: string): Row => ({ key: "cpu", title, unit: "ms" });
const wallRow = (title: string): Row => ({ key: "wall", title, unit: "ms" });

/** One list for all runs, as a user would have it. */
const ADD = [addTool];

function fail(what: string): never {
  throw new Error(`Not what was to be measured: ${what}`);
}

function expectText({ error, textChars }: Outcome, wanted: number): void {
  if (error !== undefined) fail(error);
  if (textChars !== wanted) fail(`${textChars} characters of text instead of ${wanted}`);
}

function expectDone(outcome: Outcome, textChars: number, turns: number): void {
  expectText(outcome, textChars);
  const results = outcome.messages.filter(({ role }) => role === "tool").length;
  if (results !== turns) fail(`${results} results instead of ${turns}`);
}

/** What a run takes; what came of the last one is checked when the clock has stopped. */
async function asMs(
  run: () => Promise<Outcome>,
  check: (outcome: Outcome) => void,
): Promise<Sample> {
  let last: Outcome | undefined;
  const { cpuMs, wallMs } = await timed(async () => {
    last = await run();
  });
  check(last ?? fail("no run"));
  return { cpu: cpuMs, wall: wallMs };
}

const text: Speed = {
  name: "text",
  sizes: [1_000, 10_000, 100_000],
  grows: true,
  prepare: (peer, count) => () =>
    asMs(
      () => peer.run({ answer: () => streamParts(textParts(count)) }),
      (outcome) => expectDone(outcome, count * DELTA.length, 0),
    ),
  rows: (count) => [cpuRow(`${count.toLocaleString("en")} text deltas`)],
};

const DELTA_CHARS = 16;

const args: Speed = {
  name: "arguments",
  sizes: [10_000, 100_000, 1_000_000],
  grows: true,
  prepare(peer, bytes) {
    const json = formatArguments(bytes);
    const wanted = (JSON.parse(json) as { content: string }).content.length;
    let got = 0;
    const tools = [writeTool((chars) => (got = chars))];
    return () =>
      asMs(
        () => {
          got = 0;
          return peer.run({
            answer: (nth) =>
              streamParts(nth === 0 ? callParts("c0", "write", json, DELTA_CHARS) : textParts(1)),
            tools,
          });
        },
        (outcome) => {
          expectDone(outcome, DELTA.length, 1);
          if (got !== wanted) fail(`${got} characters of arguments instead of ${wanted}`);
        },
      );
  },
  rows: (bytes) => [cpuRow(`a call with ${bytes / 1000} KB of arguments in 16-byte deltas`)],
};

const turns: Speed = {
  name: "turns",
  sizes: [10, 100, 1_000],
  grows: true,
  prepare: (peer, count) => () =>
    asMs(
      () => peer.run({ answer: adding(count), tools: ADD }),
      (outcome) => expectDone(outcome, DELTA.length, count),
    ),
  rows: (count) => [cpuRow(`${count.toLocaleString("en")} turns, a tool call each`)],
};

const TOOL_MS = 10;

const tools: Speed = {
  name: "tools",
  sizes: [100],
  prepare(peer, count) {
    const calls = Array.from({ length: count }, (_, i) => [
      ...callParts(`c${i}`, "wait", `{"i":${i}}`),
    ]).flat();
    const waitTool = {
      name: "wait",
      description: "Waits",
      parameters: { i: "number" as const },
      run: async () => {
        await new Promise((resolve) => setTimeout(resolve, TOOL_MS));
        return "ok";
      },
    };
    const answer: Work["answer"] = (nth) => streamParts(nth === 0 ? calls : textParts(1));
    const tools = [waitTool];
    return () =>
      asMs(
        () => peer.run({ answer, tools }),
        (outcome) => expectDone(outcome, DELTA.length, count),
      );
  },
  rows: () => [wallRow("100 tools of 10 ms in one turn, wall")],
};

const WORDS = 50;
/** Runs that warm a process up before its memory is looked at. */
const WARM_AGENTS = 100;

const agents: Speed = {
  name: "agents",
  sizes: [1_000],
  isFresh: true,
  prepare: (peer, count) => async () => {
    let lost = 0;
    const all = async (number: number): Promise<void> => {
      const runs = Array.from({ length: number }, () =>
        peer.run({ answer: adding(2, WORDS), tools: ADD }),
      );
      for (const outcome of await Promise.all(runs)) {
        if (outcome.error !== undefined) fail(outcome.error);
        lost += 3 * WORDS - outcome.textDeltas;
      }
    };
    await all(WARM_AGENTS);
    lost = 0;
    const kb = process.memoryUsage().rss / 1024;
    const before = cpuMs();
    await all(count);
    const cpu = cpuMs() - before;
    return { cpu, memory: Math.max(0, process.resourceUsage().maxRSS - kb) / count, lost };
  },
  rows: (count) => [
    cpuRow(`${count.toLocaleString("en")} agents at once, 3 turns of 50 deltas`),
    { key: "memory", title: "the same, memory an agent at the peak", unit: "KB" },
  ],
};

const history: Speed = {
  name: "history",
  sizes: [10_000],
  prepare(peer, count) {
    const messages = longHistory(count);
    return async () => {
      let toModelMs = 0;
      let runs = 0;
      const { cpuMs } = await timed(async () => {
        const began = performance.now();
        const outcome = await peer.run({
          answer: () => {
            toModelMs += performance.now() - began;
            return streamParts(textParts(1));
          },
          history: messages,
          tools: ADD,
        });
        runs++;
        expectText(outcome, DELTA.length);
      });
      return { wall: toModelMs / runs, cpu: cpuMs };
    };
  },
  rows: (count) => [
    wallRow(`from the call to the model on ${count.toLocaleString("en")} messages, wall`),
    cpuRow("one turn on them"),
  ],
};

const firstEvent: Speed = {
  name: "first",
  sizes: [1],
  prepare: (peer) => async () => {
    let firstMs = 0;
    let runs = 0;
    await timed(async () => {
      let isFirst = true;
      const began = performance.now();
      const outcome = await peer.run({
        answer: () => streamParts(textParts(1)),
        event: () => {
          if (isFirst) firstMs += performance.now() - began;
          isFirst = false;
        },
      });
      runs++;
      expectText(outcome, DELTA.length);
    });
    return { wall: (firstMs / runs) * 1000 };
  },
  rows: () => [{ key: "wall", title: "first event after the call, warm", unit: "us" }],
};

const IGNORES_MS = 3_000;
const ABORT_AFTER_MS = 50;

/** A run that is aborted while its tool, which heeds no signal, goes on for seconds. */
export async function abortInTool(peer: Peer): Promise<{ idleMs: number; outcome: Outcome }> {
  const controller = new AbortController();
  let abortedAt = Number.NaN;
  const work: Work = {
    answer: (nth) =>
      streamParts(
        nth === 0 ? [...textParts(3), ...callParts("c0", "sleep", '{"i":0}')] : textParts(1),
      ),
    tools: [
      {
        name: "sleep",
        description: "Sleeps, whatever is asked of it",
        parameters: { i: "number" },
        run: async () => {
          setTimeout(() => {
            abortedAt = performance.now();
            controller.abort();
          }, ABORT_AFTER_MS);
          await new Promise((resolve) => setTimeout(resolve, IGNORES_MS));
          return "slept";
        },
      },
    ],
    signal: controller.signal,
  };
  const outcome = await peer.run(work);
  return { idleMs: performance.now() - abortedAt, outcome };
}

const abort: Speed = {
  name: "abort",
  sizes: [1],
  prepare: (peer) => async () => ({ wall: (await abortInTool(peer)).idleMs }),
  rows: () => [wallRow("from abort to idle while a tool ignores it for 3 s, wall")],
};

const idle: Speed = {
  name: "idle",
  sizes: [1_000],
  isFresh: true,
  prepare({ idle }, count) {
    if (!idle) return undefined;
    return async () => {
      const kept: unknown[] = [];
      const make = async (agents: number): Promise<void> => {
        for (let i = 0; i < agents; i++) {
          kept.push(await idle({ answer: adding(1, 3), tools: ADD }));
        }
      };
      await make(WARM_AGENTS);
      const before = await settledHeap();
      await make(count);
      const bytes = (await settledHeap()) - before;
      if (kept.length !== count + WARM_AGENTS) fail("agents that were not kept");
      return { memory: bytes / count / 1024 };
    };
  },
  rows: () => [{ key: "memory", title: "memory an idle agent keeps after a turn", unit: "KB" }],
};

/** What is alive after timers of the moment have run out and everything else was collected. */
async function settledHeap(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    collect();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const HTTP_DELTAS = 20_000;

function http(name: "anthropic" | "openai", wire: string, title: string): Speed {
  return {
    name,
    sizes: [HTTP_DELTAS],
    prepare(peer, count, { origin }) {
      const read: ((work: HttpWork) => Promise<void>) | undefined = peer[name];
      if (!read) return undefined;
      const wanted = streamedChars(count);
      return async () => {
        const { cpuMs } = await timed(async () => {
          let chars = 0;
          await read({
            baseUrl: `${origin}/${wire}/${count}`,
            text: (delta) => (chars += delta.length),
          });
          if (chars !== wanted) fail(`${chars} characters instead of ${wanted}`);
        });
        return { cpu: cpuMs };
      };
    },
    rows: () => [cpuRow(`${title}: 20,000 deltas over loopback`)],
  };
}

export const SPEEDS: readonly Speed[] = [
  text,
  args,
  turns,
  tools,
  agents,
  history,
  firstEvent,
  abort,
  idle,
  http("anthropic", "anthropic-messages", "Anthropic Messages"),
  http("openai", "openai-completions", "OpenAI chat completions"),
];
