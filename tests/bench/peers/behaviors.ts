import { collect } from "../src/measure/measure.ts";
import type { Outcome, Part, Peer, Work } from "./peer.ts";
import { abortInTool } from "./speed.ts";
import { adding, addTool, streamParts, DELTA, textParts } from "./works.ts";

/** Something that a library does or does not do, found out by a run in a process of its own. */
export interface Behavior {
  readonly name: string;
  readonly title: string;
  /** After which the run counts as hanging. */
  readonly limitMs: number;
  /** What is said of a run that takes longer. */
  readonly late: string;
  /** All libraries at once: there is nothing to do but to wait. */
  readonly isWaiting?: boolean;
  readonly find: (peer: Peer) => Promise<string>;
}

const LIMIT_MS = 30_000;
const IN_TIME = { limitMs: LIMIT_MS, late: "hangs" };
const STALL_LIMIT_MS = 180_000;

const hello: Work = { answer: adding(1, 3), tools: [addTool] };

/** How a run with `faults` ends; an unhandled rejection ends the process instead. */
function ends(name: string, what: string, faults: () => Partial<Work>): Behavior {
  return {
    name: `ends-${name}`,
    title: `ends when ${what}`,
    ...IN_TIME,
    async find(peer) {
      const { error } = await peer.run({ ...hello, ...faults() });
      return error === undefined ? "ends" : "ends, throws";
    },
  };
}

function boom(): never {
  throw new Error("boom");
}

async function* failingMidway(): AsyncGenerator<readonly Part[]> {
  yield* streamParts(textParts(3));
  boom();
}

const hasText = ({ messages }: Outcome, text: string): boolean =>
  messages.some((message) => message.role === "assistant" && message.text.includes(text));

const partial: Behavior = {
  name: "partial",
  title: "text so far after an abort",
  ...IN_TIME,
  async find(peer) {
    const controller = new AbortController();
    let events = 0;
    const outcome = await peer.run({
      answer: () => streamParts(textParts(1_000_000)),
      event: () => {
        if (++events === 100) controller.abort();
      },
      signal: controller.signal,
    });
    return hasText(outcome, DELTA) ? "kept" : "lost";
  },
};

const unanswered: Behavior = {
  name: "unanswered",
  title: "a call whose tool ignores the abort",
  ...IN_TIME,
  async find(peer) {
    const { idleMs, outcome } = await abortInTool(peer);
    const isCalled = outcome.messages.some(({ calls }) => calls?.some(({ id }) => id === "c0"));
    const answers = outcome.messages.filter(({ answers }) => answers === "c0").length;
    const when = idleMs < 2_000 ? "at once" : "when the tool is done";
    if (!isCalled) return `${when}; call lost`;
    if (answers === 0) return `${when}; no result`;
    return answers === 1 ? `${when}; answered` : `${when}; answered ${answers} times`;
  },
};

const listener: Behavior = {
  name: "listener",
  title: "a tool's result when a listener throws at it",
  ...IN_TIME,
  async find(peer) {
    let isOver = false;
    const outcome = await peer.run({
      ...hello,
      tools: [
        {
          ...addTool,
          run: (input) => {
            isOver = true;
            return addTool.run(input);
          },
        },
      ],
      listener: () => {
        if (isOver) boom();
      },
    });
    if (!outcome.messages.some(({ role }) => role === "tool")) return "lost";
    return outcome.messages.at(-1)?.role === "assistant" ? "kept, run done" : "kept, run cut off";
  },
};

const SLOW_DELTAS = 200_000;
const SLOW_MS = 4_000;

const slow: Behavior = {
  name: "slow",
  title: "heap while a reader waits 4 s, of 200,000 deltas",
  ...IN_TIME,
  async find(peer) {
    const controller = new AbortController();
    let produced = 0;
    const counted = function* (): Generator<Part> {
      // Each its own text, as from a socket.
      for (; produced < SLOW_DELTAS; produced++) yield { type: "text", delta: `${produced} ` };
    };
    let events = 0;
    let [grown, taken] = [0, 0];
    collect();
    const before = process.memoryUsage().heapUsed;
    await peer.run({
      answer: () => streamParts(counted()),
      event: async () => {
        if (++events !== 20) return;
        await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
        collect();
        taken = produced;
        grown = process.memoryUsage().heapUsed - before;
        controller.abort();
      },
      signal: controller.signal,
    });
    const count = taken < SLOW_DELTAS ? taken.toLocaleString("en") : "all";
    return `${(grown / 1e6).toFixed(1)} MB, ${count} taken`;
  },
};

async function* stalling(): AsyncGenerator<readonly Part[]> {
  yield* streamParts(textParts(3));
  await new Promise(() => {});
}

const stalled: Behavior = {
  name: "stalled",
  title: "a stream that stalls, by default",
  limitMs: STALL_LIMIT_MS,
  late: "not noticed in 3 min",
  isWaiting: true,
  async find(peer) {
    const began = performance.now();
    await peer.run({ answer: (nth) => (nth === 0 ? stalling() : streamParts(textParts(1))) });
    return `noticed after ${Math.round((performance.now() - began) / 1000)} s`;
  },
};

const STALL_MS = 500;

const stallGuard: Behavior = {
  name: "stall-guard",
  title: "the same, with its own setting",
  limitMs: LIMIT_MS,
  late: "not noticed",
  async find(peer) {
    if (!peer.stallGuard) return "no setting";
    await peer.stallGuard({ answer: stalling }, STALL_MS);
    const limits = peer.stallGuardLimits;
    return limits === undefined ? "noticed" : `noticed, by a limit on ${limits}`;
  },
};

export const BEHAVIORS: readonly Behavior[] = [
  ends("model", "the call of the model throws", () => ({ answer: boom })),
  ends("stream", "the stream fails midway", () => ({ answer: failingMidway })),
  ends("tool", "a tool throws", () => ({ tools: [{ ...addTool, run: async () => boom() }] })),
  ends("listener", "a listener throws", () => ({ listener: boom })),
  ends("hook", "a hook throws", () => ({ hook: boom })),
  partial,
  unanswered,
  listener,
  slow,
  stalled,
  stallGuard,
];

/** How long an unhandled rejection is waited for after a run. */
const AFTERMATH_MS = 200;

/** Something for the event loop to wait for, as a socket would be. */
async function alive<T>(run: Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, 1_000);
  try {
    return await run;
  } finally {
    clearInterval(timer);
  }
}

/** What `peer` does; the process is to be watched for hanging and for its death. */
export async function behave(peer: Peer, name: string): Promise<string> {
  const behavior = BEHAVIORS.find((one) => one.name === name);
  if (!behavior) throw new Error(`There is no behavior "${name}".`);
  const found = await alive(behavior.find(peer));
  await new Promise((resolve) => setTimeout(resolve, AFTERMATH_MS));
  return found;
}
