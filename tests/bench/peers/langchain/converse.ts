import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { ModelAbortError } from "@langchain/core/errors";
import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createAgent, createMiddleware, type ReactAgent } from "langchain";
import { type Outcome, type Tool, type Work } from "../peer.ts";
import { Tally } from "../tally.ts";
import { convertHistory, toPlain, toTool } from "./messages.ts";
import { Script, ScriptedModel } from "./model.ts";

/*
 * An agent of `createAgent`, for the two peers that read it in different ways.
 *
 * - An agent serves all runs with its tools, as documented, so it is made once.
 * - Callbacks are awaited instead of being queued in the background, where a listener may
 *   hear of things after the run. It takes as much time, or a little less.
 * - The limit of steps is out of reach; tools have no limit of concurrency by default.
 * - A plain run keeps no checkpoints, for speed, and runs the calls of a message in one
 *   node (`version: "v1"`). With a signal, a listener or a hook, a `MemorySaver` has the
 *   history, as documented, and the default "v2" keeps each result by itself.
 * - Traces go to LangSmith only if the environment asks for it.
 */

// Read whenever a handler is made, so this is early enough.
process.env["LANGCHAIN_CALLBACKS_BACKGROUND"] = "false";

/** What a reader of a stream reports. */
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
  readonly configurable: { readonly thread_id: string; readonly script?: Script };
  readonly signal?: AbortSignal;
  readonly callbacks?: BaseCallbackHandler[];
}

const THREAD = "bench";

export async function run(work: Work, read: Read): Promise<Outcome> {
  const memory = work.signal || work.listener || work.hook ? new MemorySaver() : undefined;
  if (!memory) return readOutcome(plainAgent(work.tools), work, read);
  const agent = createAgent({
    ...modelAndTools(work.tools),
    checkpointer: memory,
    ...(work.hook ? { middleware: [hooked(work.hook)] } : {}),
  });
  return readOutcome(agent, work, read, () => remembered(agent));
}

/**
 * The same under LangGraph's limit of a node's silence. `createAgent` does not take it for
 * its own nodes, so the agent is a node of a graph, as documented for any compiled graph.
 */
export function guardSilence(work: Work, ms: number, read: Read): Promise<Outcome> {
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("agent", plainAgent(work.tools).graph, { timeout: { idleTimeout: ms } })
    .addEdge(START, "agent")
    .addEdge("agent", END)
    .compile();
  // It streams as an agent does, which its type does not say.
  return readOutcome(graph as unknown as ReactAgent, work, read);
}

/** The same under LangGraph's limit of a step, of which an answer is one. */
export function guardSteps(work: Work, ms: number, read: Read): Promise<Outcome> {
  const agent = createAgent(modelAndTools(work.tools));
  agent.graph.stepTimeout = ms;
  return readOutcome(agent, work, read);
}

let threads = 0;

/** An agent of its own is a thread of the checkpointer: the documented way to have many. */
export async function idle(work: Work, read: Read): Promise<unknown> {
  const thread = `idle ${threads++}`;
  await converse(rememberingAgent(work.tools), work, read, new Counter(work), thread);
  return thread;
}

async function readOutcome(
  agent: ReactAgent,
  work: Work,
  read: Read,
  remembered?: () => Promise<BaseMessage[]>,
): Promise<Outcome> {
  const count = new Counter(work);
  try {
    await converse(agent, work, read, count);
    return count.outcome(() => count.messages.map(toPlain));
  } catch (error) {
    const messages = (await remembered?.()) ?? count.messages;
    const all = count.partial ? [...messages, count.partial] : messages;
    return count.outcome(() => all.map(toPlain), error);
  }
}

const model = new ScriptedModel();

function modelAndTools(tools: readonly Tool[] = []) {
  return { model, tools: tools.map(toTool) };
}

const plainAgent = madeOnce((tools) => createAgent({ ...modelAndTools(tools), version: "v1" }));
const memory = new MemorySaver();
const rememberingAgent = madeOnce((tools) =>
  createAgent({ ...modelAndTools(tools), checkpointer: memory }),
);

/** No work has more than one tool, by which its agent is known. */
function madeOnce(make: (tools: readonly Tool[]) => ReactAgent) {
  const made = new WeakMap<object, ReactAgent>();
  return (tools: readonly Tool[] = []): ReactAgent => {
    const key = tools[0] ?? made;
    const agent = made.get(key) ?? make(tools);
    made.set(key, agent);
    return agent;
  };
}

function hooked(hook: () => void) {
  return createMiddleware({ name: "hook", beforeModel: () => hook() });
}

function converse(
  agent: ReactAgent,
  work: Work,
  read: Read,
  count: Counter,
  thread: string = THREAD,
): Promise<void> {
  const messages = [...convertHistory(work.history ?? []), new HumanMessage("go")];
  const callbacks = [
    ...(work.listener ? [listening(work.listener)] : []),
    ...(work.signal ? [count.capturePartial()] : []),
  ];
  const settings = {
    configurable: { thread_id: thread, script: new Script(work.answer) },
    recursionLimit: Number.MAX_SAFE_INTEGER,
    ...(work.signal ? { signal: work.signal } : {}),
    ...(callbacks.length > 0 ? { callbacks } : {}),
  };
  return read(agent, { messages }, settings, count);
}

/** The checkpoint, with the results of tools that were done when the run was cut off. */
async function remembered(agent: ReactAgent): Promise<BaseMessage[]> {
  const { values } = await agent.graph.getState({ configurable: { thread_id: THREAD } });
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

class Counter extends Tally implements Sink {
  readonly event: Sink["event"];
  messages: BaseMessage[] = [];
  /** The answer that an abort cut off, if the library reported it. */
  partial: BaseMessage | undefined;

  constructor({ event }: Work) {
    super();
    this.event = event;
  }

  state(messages: BaseMessage[]): void {
    this.messages = messages;
  }

  /** A callback that gets the cut off answer, which no checkpoint has. */
  capturePartial(): BaseCallbackHandler {
    return BaseCallbackHandler.fromMethods({
      handleLLMError: (error: unknown) => {
        if (ModelAbortError.isInstance(error)) this.partial = error.partialOutput;
      },
    });
  }
}
