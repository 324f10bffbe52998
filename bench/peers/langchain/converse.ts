import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent, createMiddleware, type ReactAgent } from "langchain";
import { type Outcome, reasonOf, type Work } from "../peer.ts";
import { historyOf, toPlain, toTool } from "./messages.ts";
import { ScriptedModel } from "./model.ts";

/*
 * An agent of `createAgent`, for the two peers that read it in different ways.
 *
 * - Callbacks are awaited instead of being queued in the background: else `stream` loses
 *   deltas when runs are concurrent, and a listener hears of things after the run.
 * - The limit of steps is out of reach; tools have no limit of concurrency by default.
 * - A plain run keeps no checkpoints, for speed, and runs the calls of a message in one
 *   node (`version: "v1"`). With a signal, a listener or a hook, a `MemorySaver` has the
 *   history, as documented, and the default "v2" keeps each result by itself.
 * - Traces go to LangSmith only if the environment asks for it.
 */

// Read whenever a handler is made, so this is early enough.
process.env["LANGCHAIN_CALLBACKS_BACKGROUND"] = "false";

/** What a reader of a stream tells of. */
export interface Sink {
  readonly text: (delta: string) => void;
  readonly argument: () => void;
  /** The messages after each step. */
  readonly state: (messages: BaseMessage[]) => void;
  /** Called after each event. */
  readonly event: (() => void | Promise<void>) | undefined;
}

/** Runs an agent and reads its stream to the end. */
export type Read = (
  agent: ReactAgent,
  input: { messages: BaseMessage[] },
  settings: Settings,
  sink: Sink,
) => Promise<void>;

export interface Settings {
  readonly recursionLimit: number;
  readonly configurable: { readonly thread_id: string };
  readonly signal?: AbortSignal;
  readonly callbacks?: BaseCallbackHandler[];
}

const thread = { configurable: { thread_id: "bench" } };

export async function run(work: Work, read: Read): Promise<Outcome> {
  const memory = work.signal || work.listener || work.hook ? new MemorySaver() : undefined;
  const agent = agentFor(work, memory);
  const count = new Counter(work);
  try {
    await converse(agent, work, read, count);
    return count.outcome(count.messages);
  } catch (error) {
    return count.outcome(memory ? await remembered(agent) : count.messages, error);
  }
}

export async function idle(work: Work, read: Read): Promise<unknown> {
  const memory = new MemorySaver();
  const agent = agentFor(work, memory);
  await converse(agent, work, read, new Counter(work));
  return { agent, memory, thread };
}

function agentFor({ answer, tools = [], hook }: Work, memory: MemorySaver | undefined): ReactAgent {
  return createAgent({
    model: new ScriptedModel(answer),
    tools: tools.map(toTool),
    ...(memory ? { checkpointer: memory } : { version: "v1" }),
    ...(hook
      ? { middleware: [createMiddleware({ name: "hook", beforeModel: () => hook() })] }
      : {}),
  });
}

function converse(agent: ReactAgent, work: Work, read: Read, sink: Sink): Promise<void> {
  const messages = [...historyOf(work.history ?? []), new HumanMessage("go")];
  const settings = {
    ...thread,
    recursionLimit: Number.MAX_SAFE_INTEGER,
    ...(work.signal ? { signal: work.signal } : {}),
    ...(work.listener ? { callbacks: [listening(work.listener)] } : {}),
  };
  return read(agent, { messages }, settings, sink);
}

/** The checkpoint, with the results of tools that were done when the run was cut off. */
async function remembered(agent: ReactAgent): Promise<BaseMessage[]> {
  const { values } = await agent.graph.getState(thread);
  return (values as { messages?: BaseMessage[] }).messages ?? [];
}

const callbackNames = [
  "handleLLMStart",
  "handleChatModelStart",
  "handleLLMNewToken",
  "handleChatModelStreamEvent",
  "handleLLMError",
  "handleLLMEnd",
  "handleChainStart",
  "handleChainError",
  "handleChainEnd",
  "handleToolStart",
  "handleToolEvent",
  "handleToolError",
  "handleToolEnd",
  "handleText",
  "handleAgentAction",
  "handleAgentEnd",
  "handleRetrieverStart",
  "handleRetrieverError",
  "handleRetrieverEnd",
  "handleCustomEvent",
] as const;

function listening(listener: (event: string) => void): BaseCallbackHandler {
  return BaseCallbackHandler.fromMethods(
    Object.fromEntries(callbackNames.map((name) => [name, () => listener(name)])),
  );
}

class Counter implements Sink {
  readonly event: Sink["event"];
  messages: BaseMessage[] = [];
  #textDeltas = 0;
  #textChars = 0;
  #argumentDeltas = 0;

  constructor({ event }: Work) {
    this.event = event;
  }

  text(delta: string): void {
    this.#textDeltas++;
    this.#textChars += delta.length;
  }

  argument(): void {
    this.#argumentDeltas++;
  }

  state(messages: BaseMessage[]): void {
    this.messages = messages;
  }

  outcome(messages: readonly BaseMessage[], error?: unknown): Outcome {
    return {
      textDeltas: this.#textDeltas,
      textChars: this.#textChars,
      argumentDeltas: this.#argumentDeltas,
      messages: messages.map(toPlain),
      ...(error === undefined ? {} : { error: reasonOf(error) }),
    };
  }
}
