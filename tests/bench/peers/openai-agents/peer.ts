import {
  Agent,
  type AgentInputItem,
  type CallModelInputFilter,
  type ModelSettings,
  OpenAIChatCompletionsModel,
  Runner,
  type RunStreamEvent,
  setTracingDisabled,
  type Tool as AgentTool,
  tool,
} from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { type HttpWork, type Outcome, type Peer, type Tool, type Work } from "../peer.ts";
import { once } from "../once.ts";
import { Tally } from "../tally.ts";
import { buildInput, toPlain } from "./messages.ts";
import { ARGUMENTS_DELTA, BenchModel } from "./model.ts";

/*
 * One runner for all runs, as its documentation advises, with tracing off, since spans would
 * go to a network; `maxTurns: null` lifts the limit of turns, and function tools have no
 * limit at once by default. Tools have Zod parameters and are made once. The model is a plain
 * `Model`: the library's `ScriptedModel` can stream too, but it copies and keeps each
 * request, which adds half again to the cost of a turn. Text comes as `output_text_delta`.
 * The library has no event of its own for arguments: its Responses client hands on the
 * service's events as they are, so this model sends those. There is no finish reason in its
 * protocol. A run that is aborted ends without an error: its stream is over at once, and
 * `completed` settles when its work is, before which the turn is not in the history. Against
 * stalls it has `timeoutMs`, a limit for the whole model call rather than for a
 * silence. It has no client of Anthropic's Messages in its own packages.
 */
setTracingDisabled(true);
const runner = new Runner({ tracingDisabled: true });

const EVENTS = [
  "agent_start",
  "agent_end",
  "agent_handoff",
  "agent_tool_start",
  "agent_tool_end",
] as const;

type Run = Awaited<ReturnType<typeof start>>;

const openaiAgents: Peer = {
  name: "OpenAI Agents",
  imports: ["@openai/agents"],
  run: (work) => converse(work, agentFor(work)),
  /** An agent is only configuration here, and conversations may share one. */
  async idle(work) {
    const agent = agentFor(work);
    const run = await start(agent, buildInput(work.history), work);
    await run.completed;
    return { agent, history: run.history };
  },
  openai,
  stallGuard: (work, ms) => converse(work, agentFor(work, { modelSettings: { timeoutMs: ms } })),
  stallGuardLimits: "the whole answer",
};
export default openaiAgents;

async function converse(work: Work, agent: Agent): Promise<Outcome> {
  const tally = new Tally();
  const input = buildInput(work.history);
  let run: Run | undefined;
  try {
    run = await start(agent, input, work);
    for await (const event of run) {
      count(tally, event);
      const wait = work.event?.();
      if (wait) await wait;
    }
    await run.completed;
    const { history } = run;
    return tally.outcome(() => toPlain(history));
  } catch (error) {
    const history = run?.history ?? input;
    return tally.outcome(() => toPlain(history), error);
  }
}

function start(agent: Agent, input: AgentInputItem[], { signal, hook }: Work) {
  return runner.run(agent, input, {
    stream: true,
    maxTurns: null,
    ...(signal ? { signal } : {}),
    ...(hook ? { callModelInputFilter: createFilter(hook) } : {}),
  });
}

function agentFor(
  { tools = [], listener, answer }: Work,
  options: { modelSettings?: ModelSettings } = {},
): Agent {
  const agent = new Agent({
    ...options,
    name: "bench",
    model: new BenchModel(answer),
    tools: tools.map(toTool),
  });
  if (listener) {
    for (const event of EVENTS) agent.on(event, () => listener(event));
  }
  return agent;
}

/** A filter that changes nothing, and says so, which saves the library a copy. */
function createFilter(hook: () => void): CallModelInputFilter {
  const filter: CallModelInputFilter = ({ modelData }) => {
    hook();
    return modelData;
  };
  filter.preserveInputIdentity = true;
  return filter;
}

const zodTypes = { string: z.string(), number: z.number() };

const toTool = once(({ name, description, parameters, run }: Tool): AgentTool => {
  const shape = Object.entries(parameters).map(([key, type]) => [key, zodTypes[type]]);
  return tool({
    name,
    description,
    parameters: z.object(Object.fromEntries(shape)),
    execute: (input, _context, details) => run(input, details?.signal),
  });
});

function count(tally: Tally, event: RunStreamEvent): void {
  if (event.type !== "raw_model_stream_event") return;
  const { data } = event;
  if (data.type === "output_text_delta") tally.text(data.delta);
  else if (data.type === "model" && data.event.type === ARGUMENTS_DELTA) tally.argument();
}

async function openai({ baseUrl, signal, text }: HttpWork): Promise<void> {
  const client = new OpenAI({ apiKey: "key", baseURL: baseUrl, maxRetries: 0 });
  const agent = new Agent({
    name: "bench",
    model: new OpenAIChatCompletionsModel(client, "bench"),
  });
  const run = await runner.run(agent, "go", { stream: true, ...(signal ? { signal } : {}) });
  for await (const event of run) {
    if (event.type !== "raw_model_stream_event") continue;
    if (event.data.type === "output_text_delta") text(event.data.delta);
  }
  await run.completed;
}
