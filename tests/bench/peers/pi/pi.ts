import {
  type HttpWork,
  type Outcome,
  type Peer,
  type Plain,
  type Tool,
  type Work,
} from "../peer.ts";
import { once } from "../once.ts";
import { Tally } from "../tally.ts";
import {
  type Assistant,
  assistant,
  type JsonObject,
  type Message,
  model,
  type ModelEvents,
  pump,
  Reply,
  type Text,
  text,
} from "./model.ts";

/*
 * pi-agent-core, what its versions have in common.
 *
 * Its documentation begins with the `Agent` class and describes `agentLoop` as the low-level
 * way, so there is a peer for each. The agent notifies its listeners at once and awaits them,
 * without the second queue of the loop's stream, and takes what a model or a hook throws;
 * the bare loop has no such listeners. Only the class has `subscribe`, so the loop's peer
 * uses it where there is a listener, and where there is a hook, which may throw here.
 *
 * There is no limit of turns to lift, and tools run in parallel without a limit by default.
 * Messages are sent as they are: the filter of those of an app's own would cost each turn.
 */

type AnyMessage = { role: string };

type Update =
  | { type: "text_delta" | "toolcall_delta" | "thinking_delta"; delta: string }
  | { type: "text_start" | "text_end" | "toolcall_start" | "toolcall_end" }
  | { type: "start" | "thinking_start" | "thinking_end" | "done" | "error" };

type Event =
  | { type: "message_update"; assistantMessageEvent: Update }
  | { type: "agent_end"; messages: AnyMessage[] }
  | { type: "agent_start" | "turn_start" | "turn_end" | "message_start" | "message_end" }
  | { type: "tool_execution_start" | "tool_execution_update" | "tool_execution_end" };

type Ask<Events> = (model: unknown, context: unknown, options?: { signal?: AbortSignal }) => Events;

interface PiTool<Schema> {
  name: string;
  label: string;
  description: string;
  parameters: Schema;
  execute: (
    id: string,
    input: unknown,
    signal?: AbortSignal,
  ) => Promise<{ content: Text[]; details: JsonObject }>;
}

interface PiAgent {
  subscribe(listener: (event: Event) => Promise<void> | void): () => void;
  prompt(text: string): Promise<void>;
  abort(): void;
  readonly state: { readonly messages: AnyMessage[] };
}

/** What a version hands in; `Events` and `Schema` are its own classes. */
export interface Pi<Events extends ModelEvents, Schema> {
  readonly name: string;
  readonly imports: readonly string[];
  readonly createEvents: () => Events;
  readonly parseJson: (json: string) => JsonObject;
  readonly buildSchema: (tool: Tool) => Schema;
  /** An `Agent`, with pi's own clients if there is no `ask`; what the hook throws is left to it. */
  readonly createAgent: (
    initialState: { model: typeof model; messages: Message[]; tools: PiTool<Schema>[] },
    ask?: Ask<Events>,
    hook?: () => void,
  ) => PiAgent;
  /** `agentLoop`, with pi's own clients if there is no `ask`. */
  readonly loop: (
    prompt: Message,
    context: { messages: Message[]; tools: PiTool<Schema>[] },
    config: { model: typeof model; apiKey?: string },
    signal: AbortSignal | undefined,
    ask?: Ask<Events>,
  ) => AsyncIterable<Event> & { result(): Promise<AnyMessage[]> };
}

/** The two ways to use a version. */
export interface PiPeers {
  readonly agent: Peer;
  readonly loop: Peer;
}

export function createPiPeers<Events extends ModelEvents, Schema>(pi: Pi<Events, Schema>): PiPeers {
  const toolOf = once((tool: Tool): PiTool<Schema> => ({
    name: tool.name,
    label: tool.name,
    description: tool.description,
    parameters: pi.buildSchema(tool),
    async execute(_id, input, signal) {
      // pi has checked it against the schema.
      const result = await tool.run(input as Record<string, unknown>, signal);
      return { content: [text(result)], details: {} };
    },
  }));

  const buildContext = ({ history, tools = [] }: Work) => ({
    messages: history ? messagesOf(history) : [],
    tools: tools.map(toolOf),
  });

  function createAsk(work: Work): Ask<Events> {
    let asked = 0;
    return (_model, _context, options) => {
      const answer = work.answer(asked++);
      const events = pi.createEvents();
      void pump(answer, new Reply(events, pi.parseJson), options?.signal);
      return events;
    };
  }

  const agentFor = (work: Work): PiAgent =>
    pi.createAgent({ model, ...buildContext(work) }, createAsk(work), work.hook);

  async function runAgent(work: Work): Promise<Outcome> {
    const { listener, signal } = work;
    const tally = new Tally();
    const agent = agentFor(work);
    if (listener) agent.subscribe((event) => listener(event.type));
    agent.subscribe((event) => {
      count(tally, event);
      return work.event?.();
    });
    try {
      await promptFor(agent, signal);
      return toOutcome(tally, agent.state.messages);
    } catch (error) {
      return toOutcome(tally, agent.state.messages, error);
    }
  }

  async function runLoop(work: Work): Promise<Outcome> {
    const tally = new Tally();
    const context = buildContext(work);
    const stream = pi.loop(prompt, context, { model }, work.signal, createAsk(work));
    try {
      for await (const event of stream) {
        count(tally, event);
        const wait = work.event?.();
        if (wait) await wait;
      }
      return toOutcome(tally, [...context.messages, ...(await stream.result())]);
    } catch (error) {
      return toOutcome(tally, context.messages, error);
    }
  }

  async function readAgent({ baseUrl, signal, text }: HttpWork, api: string): Promise<void> {
    const agent = pi.createAgent({ model: { ...model, api, baseUrl }, messages: [], tools: [] });
    agent.subscribe((event) => reportText(event, text));
    await promptFor(agent, signal);
    throwUnlessDone(agent.state.messages.at(-1));
  }

  async function readLoop({ baseUrl, signal, text }: HttpWork, api: string): Promise<void> {
    const config = { model: { ...model, api, baseUrl }, apiKey: "key" };
    const stream = pi.loop(prompt, { messages: [], tools: [] }, config, signal);
    for await (const event of stream) reportText(event, text);
    throwUnlessDone((await stream.result()).at(-1));
  }

  const agent: Peer = {
    name: pi.name,
    imports: pi.imports,
    run: runAgent,
    async idle(work) {
      const agent = agentFor(work);
      await agent.prompt("go");
      return agent;
    },
    anthropic: (work) => readAgent(work, "anthropic-messages"),
    openai: (work) => readAgent(work, "openai-completions"),
  };
  const loop: Peer = {
    name: `${pi.name} agentLoop`,
    imports: pi.imports,
    run: (work) => (work.listener || work.hook ? runAgent(work) : runLoop(work)),
    anthropic: (work) => readLoop(work, "anthropic-messages"),
    openai: (work) => readLoop(work, "openai-completions"),
  };
  return { agent, loop };
}

const prompt: Message = { role: "user", content: "go", timestamp: 0 };

/** The class has no option for a signal, so an abort is handed on to it. */
async function promptFor(agent: PiAgent, signal: AbortSignal | undefined): Promise<void> {
  const abort = (): void => agent.abort();
  signal?.addEventListener("abort", abort);
  try {
    const running = agent.prompt("go");
    // Before its run begins, an agent has nothing to abort.
    if (signal?.aborted) abort();
    await running;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

function reportText(event: Event, text: (delta: string) => void): void {
  if (event.type !== "message_update") return;
  const update = event.assistantMessageEvent;
  if (update.type === "text_delta") text(update.delta);
}

function count(tally: Tally, event: Event): void {
  if (event.type !== "message_update") return;
  const update = event.assistantMessageEvent;
  if (update.type === "text_delta") tally.text(update.delta);
  else if (update.type === "toolcall_delta") tally.argument();
}

function toOutcome(tally: Tally, messages: readonly AnyMessage[], error?: unknown): Outcome {
  return tally.outcome(() => messages.filter(isConversation).map(toPlain), error);
}

function throwUnlessDone(last: AnyMessage | undefined): void {
  if (!last || !isConversation(last) || last.role !== "assistant")
    throw new Error("There is no answer.");
  if (last.stopReason !== "stop") throw new Error(last.errorMessage ?? last.stopReason);
}

/** Those of the system, by which 0.87 describes its tools to the model, are no part of the conversation. */
function isConversation(message: AnyMessage): message is Message {
  const { role } = message;
  return role === "user" || role === "assistant" || role === "toolResult";
}

const messagesOf = once((history: readonly Plain[]): Message[] => history.map(toMessage));

function toMessage({ role, text: plainText, calls = [], answers = "", name = "" }: Plain): Message {
  if (role === "user") return { role, content: plainText, timestamp: 0 };
  if (role === "tool") {
    const content = [text(plainText)];
    const call = { toolCallId: answers, toolName: name };
    return { role: "toolResult", ...call, content, isError: false, timestamp: 0 };
  }
  const content: Assistant["content"] = plainText === "" ? [] : [text(plainText)];
  for (const { id, name, input } of calls) {
    // It came as JSON, which its type does not say.
    content.push({ type: "toolCall", id, name, arguments: input as JsonObject });
  }
  return assistant(content, calls.length > 0 ? "toolUse" : "stop");
}

function toPlain(message: Message): Plain {
  const { content } = message;
  const blocks = typeof content === "string" ? [text(content)] : content;
  const plainText = blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
  if (message.role === "toolResult") {
    return { role: "tool", text: plainText, answers: message.toolCallId, name: message.toolName };
  }
  const calls = blocks
    .filter((block) => block.type === "toolCall")
    .map(({ id, name, arguments: input }) => ({ id, name, input }));
  return { role: message.role, text: plainText, ...(calls.length === 0 ? {} : { calls }) };
}
