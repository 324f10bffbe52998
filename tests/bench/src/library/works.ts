import {
  Agent,
  agentLoop,
  type AgentLoopConfig,
  type AgentMessage,
  type AgentTool,
} from "@gyre/agent";
import type { StreamFn } from "@gyre/ai";
import { floorLoop, type FloorMessage, type FloorTool, type RawEvent } from "./floor.ts";
import {
  argumentsSource,
  benchModel,
  instant,
  instantSource,
  type Source,
  textSource,
  wire,
} from "./models.ts";
import { formatArguments } from "./raw.ts";

export type Side = "floor" | "gyre";

/** The same work, done by each side. Both throw if they see less than was sent. */
export type Work = Readonly<Record<Side, () => Promise<void>>>;

export const user: AgentMessage = { role: "user", content: "go", timestamp: 0 };

/** Responses of a model that emits all of one at once, by how many messages there are. */
export type Responses = (messages: number) => readonly RawEvent[];

export function fail(what: string): never {
  throw new Error(`The benchmark is not measuring what it says: ${what}`);
}

export function expect(what: string, got: number, wanted: number): void {
  if (got !== wanted) fail(`${what}: ${got} instead of ${wanted}`);
}

/** Runs the floor's loop on one prompt. Resolves to the number of deltas. */
export async function runFloor(
  source: (messages: number) => Source,
  tools: Readonly<Record<string, FloorTool>> = {},
): Promise<number> {
  let deltas = 0;
  const messages: FloorMessage[] = [{ role: "user", content: [{ type: "text", text: "go" }] }];
  const model = (sent: readonly FloorMessage[]): AsyncIterable<RawEvent> => source(sent.length)();
  for await (const event of floorLoop(messages, model, tools)) {
    if (event.type === "message_update" && event.kind === "delta") deltas++;
  }
  return deltas;
}

/** The same where each response is there at once. */
export function runFloorAtOnce(
  responses: Responses,
  tools: Readonly<Record<string, FloorTool>> = {},
): Promise<number> {
  return runFloor((messages) => instantSource(responses(messages)), tools);
}

/** Starts Gyre's loop on one prompt. */
export function startGyre(
  streamFn: StreamFn,
  tools: AgentTool[] = [],
  config: Partial<AgentLoopConfig> = {},
): ReturnType<typeof agentLoop> {
  const context = { messages: [], tools };
  return agentLoop([user], context, { model: benchModel, ...config }, undefined, streamFn);
}

/** Runs Gyre's loop on one prompt. Resolves to the number of deltas. */
export async function runGyre(
  streamFn: StreamFn,
  tools: AgentTool[] = [],
  config: Partial<AgentLoopConfig> = {},
): Promise<number> {
  let deltas = 0;
  for await (const event of startGyre(streamFn, tools, config)) {
    if (event.type === "message_update" && "delta" in event.assistantMessageEvent) deltas++;
    else if (event.type === "agent_end" && event.stop !== "done")
      fail(`stop ${event.stop} ${event.finalMessage?.errorMessage}`);
  }
  return deltas;
}

/** Text in `count` deltas. */
export function createTextWork(count: number): Work {
  const source = textSource(count);
  return {
    floor: async () => expect("floor deltas", await runFloor(() => source), count),
    gyre: async () => expect("gyre deltas", await runGyre(wire(() => source)), count),
  };
}

const writeTool: AgentTool = {
  name: "write",
  description: "Writes",
  parameters: {
    type: "object",
    properties: { path: { type: "string" }, content: { type: "string" } },
    required: ["path", "content"],
  },
  execute: () => ({ content: [{ type: "text", text: "ok" }] }),
};

/** A call with `bytes` of arguments in deltas of 16 characters. */
export function createArgumentsWork(bytes: number): Work {
  const json = formatArguments(bytes);
  const deltas = Math.ceil(json.length / 16) + 1;
  const source = (messages: number): Source =>
    messages > 1 ? textSource(1) : argumentsSource(json, 16);
  return {
    floor: async () =>
      expect("floor", await runFloor(source, { write: () => Promise.resolve("ok") }), deltas),
    gyre: async () => expect("gyre", await runGyre(wire(source), [writeTool]), deltas),
  };
}

export const addTool: AgentTool = {
  name: "add",
  description: "Adds",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  execute: (given) => {
    const { a, b } = given as { a: number; b: number };
    return { content: [{ type: "text", text: String(a + b) }] };
  },
};

export const floorAdd: FloorTool = (given) =>
  Promise.resolve(String(Number(given["a"]) + Number(given["b"])));

/** A model that calls a tool `turns` times, then answers. */
export function callAdd(turns: number): Responses {
  return (messages) => {
    const made = (messages - 1) / 2;
    if (made >= turns) return [{ type: "text", delta: "done" }, { type: "end" }];
    return [
      { type: "call", id: `c${made}`, name: "add" },
      { type: "arguments", delta: `{"a":${made},"b":1}` },
      { type: "end" },
    ];
  };
}

/** `turns` turns with a call of a tool each, and an answer. */
export function createTurnsWork(turns: number): Work {
  const responses = callAdd(turns);
  return {
    floor: async () => {
      expect("floor deltas", await runFloorAtOnce(responses, { add: floorAdd }), turns + 1);
    },
    gyre: async () => {
      expect("gyre deltas", await runGyre(instant(responses), [addTool]), turns + 1);
    },
  };
}

/** `count` agents, one after another, each made for one answer. */
export function createAgentsWork(count: number): Work {
  const responses: Responses = () => [{ type: "text", delta: "done" }, { type: "end" }];
  const repeat = async (who: string, answer: () => Promise<number>): Promise<void> => {
    for (let i = 0; i < count; i++) expect(`${who} deltas`, await answer(), 1);
  };
  return {
    floor: () => repeat("floor", () => runFloorAtOnce(responses)),
    gyre: () => repeat("gyre", () => answerOnce(instant(responses))),
  };
}

async function answerOnce(streamFn: StreamFn): Promise<number> {
  let deltas = 0;
  const options = { model: benchModel, messages: [], tools: [addTool] };
  const agent = new Agent({ streamFn, ...options });
  agent.subscribe((event) => {
    if (event.type === "message_update" && "delta" in event.assistantMessageEvent) deltas++;
  });
  await agent.prompt("go");
  return deltas;
}
