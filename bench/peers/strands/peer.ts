import {
  AfterInvocationEvent,
  AfterModelCallEvent,
  AfterToolCallEvent,
  AfterToolsEvent,
  Agent,
  AgentResultEvent,
  type AgentStreamEvent,
  type BaseModelConfig,
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
  Model,
  ModelMessageEvent,
  type ModelStreamEvent,
  ModelStreamUpdateEvent,
  NullConversationManager,
  type StreamOptions,
  tool,
  ToolResultEvent,
  ToolStreamUpdateEvent,
} from "@strands-agents/sdk";
import { z } from "zod";
import {
  type Answer,
  type HttpWork,
  type Outcome,
  type Peer,
  reasonOf,
  type Tool,
  type Work,
} from "../peer.ts";
import { messagesOf, plainOf } from "./messages.ts";

/**
 * Strands as its documentation has it: an `Agent`, its `stream`, zod tools, hooks.
 *
 * - `NullConversationManager`: the default window would drop all but the last 40 messages,
 *   and here all are to be kept.
 * - `printer: false`: the default writes each delta to the terminal.
 * - Tools run concurrently, without a limit, and turns have no limit: both are defaults.
 * - Telemetry stays as it is: no exporter is set up, and nothing turns its spans off.
 * - The model is a subclass of `Model`, an async generator as the library's own clients are.
 * - Tools are made once for each definition, as a module of tools would.
 * - A cancelled run does not throw. `agent.messages` is the only history there is; it has
 *   neither a partial answer nor the calls of a turn that failed.
 */
const strands: Peer = {
  name: "Strands",
  imports: ["@strands-agents/sdk"],
  run,
  async idle(work) {
    const agent = agentFor(work);
    await agent.invoke("go");
    return agent;
  },
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

async function run(work: Work): Promise<Outcome> {
  let [textDeltas, textChars, argumentDeltas] = [0, 0, 0];
  const agent = agentFor(work);
  let failure: { error?: string } = {};
  try {
    for await (const event of agent.stream("go", cancelledBy(work.signal))) {
      const delta = deltaOf(event);
      if (delta?.type === "textDelta") {
        textDeltas++;
        textChars += delta.text.length;
      } else if (delta?.type === "toolUseInputDelta") argumentDeltas++;
      const wait = work.event?.();
      if (wait) await wait;
    }
  } catch (error) {
    failure = { error: reasonOf(error) };
  }
  const messages = plainOf(agent.messages);
  return { textDeltas, textChars, argumentDeltas, messages, ...failure };
}

async function read(model: Model, { signal, text }: HttpWork): Promise<void> {
  const agent = new Agent({
    model,
    printer: false,
    conversationManager: new NullConversationManager(),
    retryStrategy: null,
  });
  for await (const event of agent.stream("go", cancelledBy(signal))) {
    const delta = deltaOf(event);
    if (delta?.type === "textDelta") text(delta.text);
    else if (event.type === "agentResultEvent" && event.result.stopReason !== "endTurn") {
      throw new Error(`The run ended in "${event.result.stopReason}".`);
    }
  }
}

function agentFor(work: Work): Agent {
  const { history, tools = [], listener, hook } = work;
  const agent = new Agent({
    model: new ScriptedModel(work.answer),
    tools: tools.map(toTool),
    printer: false,
    conversationManager: new NullConversationManager(),
    ...(history ? { messages: messagesOf(history) } : {}),
  });
  if (listener) {
    for (const kind of hookable) agent.addHook(kind, ({ type }) => listener(type));
  }
  if (hook) agent.addHook(BeforeModelCallEvent, hook);
  return agent;
}

function cancelledBy(signal?: AbortSignal): { cancelSignal?: AbortSignal } {
  return signal ? { cancelSignal: signal } : {};
}

function deltaOf(event: AgentStreamEvent) {
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

const made = new WeakMap<Tool, InvokableTool<unknown, string>>();

function toTool(definition: Tool): InvokableTool<unknown, string> {
  const known = made.get(definition);
  if (known) return known;
  const { name, description, parameters, run } = definition;
  const shape = Object.entries(parameters).map(([key, type]): [string, z.ZodType] => [
    key,
    type === "string" ? z.string() : z.number(),
  ]);
  const fresh = tool({
    name,
    description,
    inputSchema: z.object(Object.fromEntries(shape)),
    callback: (input, context) => run(input, context?.cancelSignal),
  });
  made.set(definition, fresh);
  return fresh;
}

class ScriptedModel extends Model {
  readonly #answer: Work["answer"];
  #asked = 0;
  #config: BaseModelConfig = { modelId: "bench" };

  constructor(answer: Work["answer"]) {
    super();
    this.#answer = answer;
  }

  override updateConfig(config: BaseModelConfig): void {
    this.#config = { ...this.#config, ...config };
  }

  override getConfig(): BaseModelConfig {
    return this.#config;
  }

  override stream(_messages: unknown, options?: StreamOptions): AsyncIterable<ModelStreamEvent> {
    return eventsOf(this.#answer(this.#asked++), options?.cancelSignal);
  }
}

async function* eventsOf(answer: Answer, signal?: AbortSignal): AsyncGenerator<ModelStreamEvent> {
  let open: "text" | "call" | undefined;
  let called = false;
  yield { type: "modelMessageStartEvent", role: "assistant" };
  for await (const parts of answer) {
    // The library's own clients throw when the request is aborted.
    signal?.throwIfAborted();
    for (const part of parts) {
      if (part.type === "arguments") {
        yield {
          type: "modelContentBlockDeltaEvent",
          delta: { type: "toolUseInputDelta", input: part.delta },
        };
      } else if (part.type === "text") {
        if (open !== "text") {
          if (open) yield { type: "modelContentBlockStopEvent" };
          yield { type: "modelContentBlockStartEvent" };
          open = "text";
        }
        yield {
          type: "modelContentBlockDeltaEvent",
          delta: { type: "textDelta", text: part.delta },
        };
      } else {
        if (open) yield { type: "modelContentBlockStopEvent" };
        yield {
          type: "modelContentBlockStartEvent",
          start: { type: "toolUseStart", name: part.name, toolUseId: part.id },
        };
        open = "call";
        called = true;
      }
    }
  }
  if (open) yield { type: "modelContentBlockStopEvent" };
  yield {
    type: "modelMetadataEvent",
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  };
  yield { type: "modelMessageStopEvent", stopReason: called ? "toolUse" : "endTurn" };
}
