import { type AgentTool, defineTool } from "@gyre/agent";
import { Accumulator, AssistantMessageEventStream, type ProtocolClient } from "@gyre/ai";
import {
  call,
  say,
  type ScriptAnswer,
  scriptedModel,
  scriptedModelInfo,
  think,
} from "@gyre/ai/testing";
import { defineAgent, type DurableAgent } from "@gyre/durable";
import { Random } from "@gyre/durable/testing";

const TOKENS_A_SECOND = 50;
const MAX_ANSWERS = 4;

export function now(): number {
  return performance.timeOrigin + performance.now();
}

/** Its answer is 50 tokens a second, each of them the time at which it was made, until it is aborted. */
export function createClockAgent(): DurableAgent {
  const protocol: ProtocolClient = {
    stream: (model, _context, { signal }) => {
      const events = new AssistantMessageEventStream();
      const out = new Accumulator(events, model, Date.now());
      out.start();
      const index = out.textStart();
      const timer = setInterval(
        () => out.text(index, `${now().toFixed(1)} `),
        1_000 / TOKENS_A_SECOND,
      );
      signal?.addEventListener("abort", () => {
        clearInterval(timer);
        out.done("stop");
      });
      return events;
    },
  };
  return defineAgent({
    name: "clock",
    version: "1",
    open: () => ({ model: scriptedModelInfo, protocol, instructions: "Say the time." }),
  });
}

/** Its answers, and what its tools report, follow from the seed and the id of the run. */
export function createRandomAgent(seed: number): DurableAgent {
  return defineAgent({
    name: "random",
    version: "1",
    open: ({ id }) => {
      const model = scriptedModel(
        ({ messages }) => {
          const turn = messages.filter(({ role }) => role === "assistant").length;
          return planAnswer(new Random(`${seed}:${id}:${turn}`), turn);
        },
        { keepCalls: false },
      );
      const { model: info } = model;
      return { model: info, protocol: model, instructions: "Work.", tools: createTools(seed) };
    },
  });
}

function planAnswer(random: Random, turn: number): ScriptAnswer {
  const text = (): string => `${random.below(1_000_000)} ü😀 `.repeat(random.between(1, 40));
  const parts = Array.from({ length: random.between(1, 3) }, () =>
    random.chance(0.3) ? think(text()) : say(text()),
  );
  const isLast = turn >= MAX_ANSWERS || random.chance(0.3);
  const calls = isLast
    ? []
    : Array.from({ length: random.between(1, 2) }, (_, at) =>
        call(random.pick(["pay", "look"]), { to: text() }, `c${turn}-${at}`),
      );
  const pace = { chunkSize: random.between(1, 30), betweenMs: random.between(0, 8) };
  return [...parts, ...calls, pace];
}

function createTools(seed: number): AgentTool[] {
  const tool = (name: string, idempotent: boolean): AgentTool => ({
    ...defineTool({
      name,
      description: name,
      parameters: { type: "object" },
      execute: async (_args, { id, update }) => {
        const random = new Random(`${seed}:${id}`);
        for (let step = 0; step < random.between(0, 4); step++) {
          // Some are too large for a notification.
          const text = `${step} `.repeat(random.chance(0.2) ? 10_000 : 1);
          update?.({ content: [{ type: "text", text }] });
          await new Promise((resolve) => setTimeout(resolve, random.below(60)));
        }
        return "done";
      },
    }),
    idempotent,
  });
  return [tool("pay", false), tool("look", true)];
}
