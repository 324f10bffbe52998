import {
  AfterInvocationEvent,
  AfterModelCallEvent,
  AfterToolCallEvent,
  AfterToolsEvent,
  Agent,
  AgentResultEvent,
  type AgentStreamEvent,
  BeforeInvocationEvent,
  BeforeModelCallEvent,
  BeforeToolCallEvent,
  BeforeToolsEvent,
  ContentBlockEvent,
  type HookableEventConstructor,
  InitializedEvent,
  InterruptEvent,
  type InvokableTool,
  MessageAddedEvent,
  type Model,
  ModelMessageEvent,
  ModelStreamUpdateEvent,
  NullConversationManager,
  tool,
  ToolResultEvent,
  ToolStreamUpdateEvent,
} from "@strands-agents/sdk";
import type { MultiAgentStreamEvent } from "@strands-agents/sdk/multiagent";
import { z } from "zod";
import { once } from "../once.ts";
import type { HttpWork, Outcome, Peer, Tool, Work } from "../peer.ts";
import { Tally } from "../tally.ts";
import { toMessages, toPlain } from "./messages.ts";
import { ScriptedModel } from "./model.ts";

/**
 * Strands as its documentation has it: an `Agent`, its `stream`, zod tools, hooks.
 *
 * - `NullConversationManager`: the default window would drop all but the last 40 messages,
 *   and here all are to be kept.
 * - `printer: false`: the default writes each delta to the terminal.
 * - Tools run concurrently, without a limit, and turns have no limit: both are defaults.
 * - Telemetry stays as it is: no exporter is set up, and nothing turns its spans off.
 * - Tools are made once for each definition, as a module of tools would.
 * - A canceled run does not throw. `agent.messages` is the only history there is; it has
 *   neither a partial answer nor the calls of a turn that failed.
 */
const strands: Peer = {
  name: "Strands",
  imports: ["@strands-agents/sdk"],
  run,
  async idle(work) {
    const agent = agentFor(work, new ScriptedModel(work.answer));
    await agent.invoke("go");
    return agent;
  },
  stallGuard,
  stallGuardLimits: "the whole run",
  // The clients are loaded here, since a user of one needs no other.
  async anthropic(work) {
    const { AnthropicModel } = await import("@strands-agents/sdk/models/anthropic");
    const clientConfig = { baseURL: work.baseUrl, maxRetries: 0 };
    await read(
      new AnthropicModel({ apiKey: "key", modelId: "bench", maxTokens: 4096, clientConfig }),
      work,
    );
  },
  async openai(work) {
    const { OpenAIModel } = await import("@strands-agents/sdk/models/openai");
    const clientConfig = { baseURL: work.baseUrl, maxRetries: 0 };
    await read(
      new OpenAIModel({ api: "chat", apiKey: "key", modelId: "bench", clientConfig }),
      work,
    );
  },
};
export default strands;

function run(work: Work): Promise<Outcome> {
  const agent = agentFor(work, new ScriptedModel(work.answer));
  return readOutcome(agent, agent.stream("go", withCancelSignal(work.signal)), work);
}

/**
 * An agent by itself has no such limit. As the node of a graph it has one, on all that it
 * does there.
 */
async function stallGuard(work: Work, ms: number): Promise<Outcome> {
  const { AgentNode, Graph } = await import("@strands-agents/sdk/multiagent");
  const agent = agentFor(work, new ScriptedModel(work.answer, true));
  const node = new AgentNode({ agent, timeout: ms, preserveContext: true });
  const stream = new Graph({ nodes: [node], edges: [], maxSteps: 1 }).stream("go");
  return readOutcome(agent, eventsOfNodes(stream), work);
}

async function* eventsOfNodes(
  stream: AsyncIterable<MultiAgentStreamEvent>,
): AsyncGenerator<AgentStreamEvent> {
  for await (const event of stream) {
    if (event.type === "nodeStreamUpdateEvent" && event.inner.source === "agent") {
      yield event.inner.event;
    } else if (event.type === "multiAgentResultEvent") {
      const failed = event.result.results.find(({ error }) => error);
      if (failed) throw failed.error;
    }
  }
}

async function readOutcome(
  agent: Agent,
  events: AsyncIterable<AgentStreamEvent>,
  work: Work,
): Promise<Outcome> {
  const tally = new Tally();
  let failure: unknown;
  try {
    for await (const event of events) {
      const delta = readDelta(event);
      if (delta?.type === "textDelta") tally.text(delta.text);
      else if (delta?.type === "toolUseInputDelta") tally.argument();
      const wait = work.event?.();
      if (wait) await wait;
    }
  } catch (error) {
    failure = error;
  }
  return tally.outcome(() => toPlain(agent.messages), failure);
}

async function read(model: Model, { signal, text }: HttpWork): Promise<void> {
  const agent = new Agent({
    model,
    printer: false,
    conversationManager: new NullConversationManager(),
    retryStrategy: null,
  });
  for await (const event of agent.stream("go", withCancelSignal(signal))) {
    const delta = readDelta(event);
    if (delta?.type === "textDelta") text(delta.text);
    else if (event.type === "agentResultEvent" && event.result.stopReason !== "endTurn") {
      throw new Error(`The run ended in "${event.result.stopReason}".`);
    }
  }
}

function agentFor({ history, tools = [], listener, hook }: Work, model: Model): Agent {
  const agent = new Agent({
    model,
    tools: tools.map(toTool),
    printer: false,
    conversationManager: new NullConversationManager(),
    ...(history ? { messages: toMessages(history) } : {}),
  });
  if (listener) {
    for (const kind of hookable) agent.addHook(kind, ({ type }) => listener(type));
  }
  if (hook) agent.addHook(BeforeModelCallEvent, hook);
  return agent;
}

function withCancelSignal(signal?: AbortSignal): { cancelSignal?: AbortSignal } {
  return signal ? { cancelSignal: signal } : {};
}

function readDelta(event: AgentStreamEvent) {
  if (event.type !== "modelStreamUpdateEvent") return undefined;
  return event.event.type === "modelContentBlockDeltaEvent" ? event.event.delta : undefined;
}

/** All kinds of events that a hook can be added for. */
const hookable: readonly HookableEventConstructor<AgentStreamEvent | InitializedEvent>[] = [
  InitializedEvent,
  BeforeInvocationEvent,
  AfterInvocationEvent,
  MessageAddedEvent,
  BeforeModelCallEvent,
  ModelStreamUpdateEvent,
  ContentBlockEvent,
  ModelMessageEvent,
  AfterModelCallEvent,
  BeforeToolsEvent,
  BeforeToolCallEvent,
  ToolStreamUpdateEvent,
  AfterToolCallEvent,
  ToolResultEvent,
  AfterToolsEvent,
  InterruptEvent,
  AgentResultEvent,
];

const zodTypes = { string: z.string(), number: z.number() };

const toTool = once(
  ({ name, description, parameters, run }: Tool): InvokableTool<unknown, string> => {
    const shape = Object.entries(parameters).map(([key, type]) => [key, zodTypes[type]]);
    return tool({
      name,
      description,
      inputSchema: z.object(Object.fromEntries(shape)),
      callback: (input, context) => run(input, context?.cancelSignal),
    });
  },
);
