// What a delta costs in our route of `useChat` and in the AI SDK's own: both in one process, with a model that costs
// next to nothing. Figures, which hold for a quiet machine alone; nothing fails.
import { Readable } from "node:stream";
import { Agent } from "../../../packages/agent/dist/index.js";
import { fromAiSdk } from "../../../packages/ai/dist/ai-sdk/index.js";
import { createChatRoute } from "../../../packages/server/dist/streams/index.js";
import { load } from "./shared.mjs";

const DELTAS = 20_000;
const DELTA = "word ";
/** Deltas that arrive together. */
const PER_READ = 16;
const ROUNDS = 5;
const FIRST_ROUNDS = 200;
const REST_MS = 2;

/** @typedef {(request: Request) => Promise<Response>} Route */

/** @param {import("./shared.mjs").Plan} plan @returns {Promise<import("./shared.mjs").Findings>} */
export async function measureSpeed(plan) {
  const ai = await load(plan, "ai");
  const { MockLanguageModelV4 } = await load(plan, "ai/test");
  /** The same model for both. @param {number} deltas */
  const makeModel = (deltas) =>
    new MockLanguageModelV4({
      doStream: async () => ({ stream: Readable.toWeb(Readable.from(listParts(deltas))) }),
    });
  /** @type {Record<string, (deltas: number) => Route>} */
  const routes = {
    "@gyre/server/streams": (deltas) => {
      const { model, protocol } = fromAiSdk(makeModel(deltas));
      return createChatRoute(() => new Agent({ model, protocol }));
    },
    "ai, streamText": (deltas) => {
      const model = makeModel(deltas);
      return async (request) => {
        const { messages: given } = await request.json();
        const messages = await ai.convertToModelMessages(given);
        return ai.streamText({ model, messages }).toUIMessageStreamResponse();
      };
    },
    "ai, agent": (deltas) => {
      const agent = new ai.ToolLoopAgent({ model: makeModel(deltas) });
      return async (request) => {
        const { messages } = await request.json();
        return ai.createAgentUIStreamResponse({ agent, uiMessages: messages });
      };
    },
  };
  /** @type {{ name: string, makeRoute: (deltas: number) => Route, cpu: number[], first: number[] }[]} */
  const measured = Object.entries(routes).map(([name, makeRoute]) => {
    return { name, makeRoute, cpu: [], first: [] };
  });
  // In turn, so that each is as warm as the others; the first round does not count.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { makeRoute, cpu } of measured) {
      const micros = await measureCpu(makeRoute(DELTAS));
      if (round > 0) cpu.push(micros);
    }
  }
  for (let round = 0; round < FIRST_ROUNDS; round++) {
    for (const { makeRoute, first } of measured) first.push(await measureFirst(makeRoute(1)));
  }
  const figures = measured.map(
    ({ name, cpu, first }) =>
      `${name}: ${pickMedian(cpu).toFixed(2)} µs of CPU a delta, first delta after ${pickMedian(first).toFixed(2)} ms`,
  );
  return { problems: [], figures };
}

/** As from a network: some at a time. @param {number} deltas */
async function* listParts(deltas) {
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "1" };
  for (let count = 0; count < deltas; count++) {
    if (count % PER_READ === 0) await new Promise((resolve) => setImmediate(resolve));
    yield { type: "text-delta", id: "1", delta: DELTA };
  }
  yield { type: "text-end", id: "1" };
  const usage = { inputTokens: {}, outputTokens: {} };
  yield { type: "finish", finishReason: { unified: "stop" }, usage };
}

function makeRequest() {
  const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "Go" }] }];
  const body = JSON.stringify({ id: "chat", messages });
  return new Request("http://page.example/api/chat", { method: "POST", body });
}

/** @param {Route} route microseconds of CPU a delta */
async function measureCpu(route) {
  const before = process.cpuUsage();
  const text = await (await route(makeRequest())).text();
  const { user, system } = process.cpuUsage(before);
  const count = text.split('"text-delta"').length - 1;
  // Deltas that are joined would cost less than they seem.
  if (count !== DELTAS) throw new Error(`${count} of ${DELTAS} deltas came.`);
  return (user + system) / DELTAS;
}

/** @param {Route} route milliseconds from the request to the first delta */
async function measureFirst(route) {
  // What the one before it still does is not part of this one.
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  const began = performance.now();
  const reader = (await route(makeRequest())).body?.getReader();
  let took = Number.NaN;
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    if (!Number.isNaN(took) || !Buffer.from(part.value).includes("text-delta")) continue;
    took = performance.now() - began;
  }
  if (Number.isNaN(took)) throw new Error("No delta came.");
  return took;
}

/** @param {number[]} values */
function pickMedian(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
