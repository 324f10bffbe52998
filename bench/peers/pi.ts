import {
  type Answer,
  type HttpWork,
  type Outcome,
  type Part,
  type Peer,
  type Plain,
  reasonOf,
  type Tool,
  type Work,
} from "./peer.ts";

/*
 * pi-agent-core, what its versions have in common.
 *
 * A run is the stateless `agentLoop`, read as a stream. A listener or a hook makes it an
 * `Agent`: only that class has `subscribe`, and only it takes what a hook throws; the
 * bare loop would leave its stream open for ever. There is no limit of turns to lift,
 * and tools run in parallel without a limit by default.
 *
 * The model is a stream function of our own, since pi's "faux" one cuts its text at
 * random. It does what the providers of pi do: one message that grows in place, is part
 * of each event, and has its call's arguments parsed by pi's own parser at each delta,
 * as the events of pi promise. A failure is an event at the end, not a throw.
 */

type Json = null | boolean | number | string | readonly Json[] | JsonObject;
type JsonObject = { [key: string]: Json };

type Text = { type: "text"; text: string };
type Call = { type: "toolCall"; id: string; name: string; arguments: JsonObject };

interface Assistant {
  role: "assistant";
  content: (Text | Call)[];
  api: string;
  provider: string;
  model: string;
  usage: typeof noUsage & { cost: typeof noCost };
  stopReason: "stop" | "toolUse" | "error" | "aborted";
  errorMessage?: string;
  timestamp: number;
}

interface Result {
  role: "toolResult";
  toolCallId: string;
  toolName: string;
  content: Text[];
  isError: boolean;
  timestamp: number;
}

type Message = { role: "user"; content: string | Text[]; timestamp: number } | Assistant | Result;
type AnyMessage = { role: string };

type ModelEvent =
  | { type: "start"; partial: Assistant }
  | { type: "text_start" | "toolcall_start"; contentIndex: number; partial: Assistant }
  | {
      type: "text_delta" | "toolcall_delta";
      contentIndex: number;
      delta: string;
      partial: Assistant;
    }
  | { type: "text_end"; contentIndex: number; content: string; partial: Assistant }
  | { type: "toolcall_end"; contentIndex: number; toolCall: Call; partial: Assistant }
  | { type: "done"; reason: "stop" | "toolUse"; message: Assistant }
  | { type: "error"; reason: "error" | "aborted"; error: Assistant };

/** The queue of a model's events that pi reads. */
interface ModelEvents {
  push(event: ModelEvent): void;
  end(): void;
}

type Update =
  | { type: "text_delta" | "toolcall_delta" | "thinking_delta"; delta: string }
  | { type: "text_start" | "text_end" | "toolcall_start" | "toolcall_end" }
  | { type: "start" | "thinking_start" | "thinking_end" | "done" | "error" };

type Event =
  | { type: "message_update"; assistantMessageEvent: Update }
  | { type: "agent_end"; messages: AnyMessage[] }
  | { type: "agent_start" | "turn_start" | "turn_end" | "message_start" | "message_end" }
  | { type: "tool_execution_start" | "tool_execution_update" | "tool_execution_end" };

type PiModel = typeof model;
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

/** What a version hands in; `Events` and `Schema` are its own classes. */
export interface Pi<Events extends ModelEvents, Schema> {
  readonly name: string;
  readonly imports: readonly string[];
  readonly createEvents: () => Events;
  readonly parseJson: (json: string) => JsonObject;
  readonly schemaOf: (tool: Tool) => Schema;
  /** `agentLoop` with messages that are sent as they are; its own clients if there is no `ask`. */
  readonly loop: (
    prompt: Message,
    context: { messages: Message[]; tools: PiTool<Schema>[] },
    config: { model: PiModel; apiKey?: string; maxRetries?: number },
    signal: AbortSignal | undefined,
    ask?: Ask<Events>,
  ) => AsyncIterable<Event> & { result(): Promise<AnyMessage[]> };
  /** An `Agent`; what the hook throws is left to it. */
  readonly createAgent: (
    initialState: { model: PiModel; messages: Message[]; tools: PiTool<Schema>[] },
    streamFn: Ask<Events>,
    hook?: () => void,
  ) => {
    subscribe(listener: (event: Event) => Promise<void> | void): () => void;
    prompt(text: string): Promise<void>;
    abort(): void;
    readonly state: { readonly messages: AnyMessage[] };
  };
}

export function createPiPeer<Events extends ModelEvents, Schema>(pi: Pi<Events, Schema>): Peer {
  const toolsOf = once((tools: readonly Tool[]) =>
    tools.map((tool): PiTool<Schema> => ({
      name: tool.name,
      label: tool.name,
      description: tool.description,
      parameters: pi.schemaOf(tool),
      async execute(_id, input, signal) {
        // pi has checked it against the schema.
        const result = await tool.run(input as Record<string, unknown>, signal);
        return { content: [text(result)], details: {} };
      },
    })),
  );

  const contextOf = ({ history, tools }: Work) => ({
    messages: history ? messagesOf(history) : [],
    tools: tools ? toolsOf(tools) : [],
  });

  function askOf(work: Work): Ask<Events> {
    let asked = 0;
    return (_model, _context, options) => {
      const answer = work.answer(asked++);
      const events = pi.createEvents();
      void pump(answer, new Reply(events, pi.parseJson), options?.signal);
      return events;
    };
  }

  async function runLoop(work: Work): Promise<Outcome> {
    const count = new Counter();
    const context = contextOf(work);
    const stream = pi.loop(prompt, context, { model }, work.signal, askOf(work));
    try {
      for await (const event of stream) {
        count.take(event);
        const wait = work.event?.();
        if (wait) await wait;
      }
      return count.outcome([...context.messages, ...(await stream.result())]);
    } catch (error) {
      return count.outcome(context.messages, error);
    }
  }

  const agentFor = (work: Work) =>
    pi.createAgent({ model, ...contextOf(work) }, askOf(work), work.hook);

  async function runAgent(work: Work): Promise<Outcome> {
    const { listener, signal } = work;
    const count = new Counter();
    const agent = agentFor(work);
    if (listener) agent.subscribe((event) => listener(event.type));
    agent.subscribe((event) => {
      count.take(event);
      return work.event?.();
    });
    const abort = (): void => agent.abort();
    signal?.addEventListener("abort", abort);
    try {
      const running = agent.prompt("go");
      // Before its run begins, an agent has nothing to abort.
      if (signal?.aborted) abort();
      await running;
      return count.outcome(agent.state.messages);
    } catch (error) {
      return count.outcome(agent.state.messages, error);
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  async function read({ baseUrl, signal, text }: HttpWork, api: string): Promise<void> {
    const config = { model: { ...model, api, baseUrl }, apiKey: "key", maxRetries: 0 };
    for await (const event of pi.loop(prompt, { messages: [], tools: [] }, config, signal)) {
      if (event.type === "agent_end") throwUnlessDone(event.messages.at(-1));
      if (event.type !== "message_update") continue;
      const update = event.assistantMessageEvent;
      if (update.type === "text_delta") text(update.delta);
    }
  }

  return {
    name: pi.name,
    imports: pi.imports,
    run: (work) => (work.listener || work.hook ? runAgent(work) : runLoop(work)),
    async idle(work) {
      const agent = agentFor(work);
      await agent.prompt("go");
      return agent;
    },
    anthropic: (work) => read(work, "anthropic-messages"),
    openai: (work) => read(work, "openai-completions"),
  };
}

const noCost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const noUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 };

const model = {
  id: "bench",
  name: "Bench",
  api: "bench",
  provider: "bench",
  baseUrl: "",
  reasoning: false,
  input: ["text" as const],
  cost: noCost,
  contextWindow: 1_000_000,
  maxTokens: 32_000,
};

const prompt: Message = { role: "user", content: "go", timestamp: 0 };

async function pump(answer: Answer, reply: Reply, signal?: AbortSignal): Promise<void> {
  try {
    throwIfAborted(signal);
    reply.start();
    for await (const parts of answer) {
      throwIfAborted(signal);
      for (const part of parts) reply.write(part);
    }
    throwIfAborted(signal);
    reply.done();
  } catch (error) {
    reply.fail(signal?.aborted ? "aborted" : "error", error);
  }
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new Error("Request was aborted");
}

/** An answer as it grows, told to pi. */
class Reply {
  readonly #events: ModelEvents;
  readonly #parse: (json: string) => JsonObject;
  readonly #message = assistant([], "stop");
  #open: Text | Call | undefined;
  #json = "";

  constructor(events: ModelEvents, parse: (json: string) => JsonObject) {
    this.#events = events;
    this.#parse = parse;
  }

  start(): void {
    this.#events.push({ type: "start", partial: this.#message });
  }

  write(part: Part): void {
    if (part.type === "text") {
      const block = this.#open?.type === "text" ? this.#open : this.#begin(text(""));
      block.text += part.delta;
      this.#delta("text_delta", part.delta);
    } else if (part.type === "call") {
      this.#begin({ type: "toolCall", id: part.id, name: part.name, arguments: {} });
      this.#message.stopReason = "toolUse";
    } else if (this.#open?.type === "toolCall") {
      this.#json += part.delta;
      this.#open.arguments = this.#parse(this.#json);
      this.#delta("toolcall_delta", part.delta);
    }
  }

  #begin<Block extends Text | Call>(block: Block): Block {
    this.#end();
    this.#open = block;
    this.#json = "";
    const contentIndex = this.#message.content.push(block) - 1;
    const type = block.type === "text" ? "text_start" : "toolcall_start";
    this.#events.push({ type, contentIndex, partial: this.#message });
    return block;
  }

  #delta(type: "text_delta" | "toolcall_delta", delta: string): void {
    const contentIndex = this.#message.content.length - 1;
    this.#events.push({ type, contentIndex, delta, partial: this.#message });
  }

  #end(): void {
    const block = this.#open;
    const partial = this.#message;
    const contentIndex = partial.content.length - 1;
    if (block?.type === "text") {
      this.#events.push({ type: "text_end", contentIndex, content: block.text, partial });
    } else if (block) {
      block.arguments = this.#parse(this.#json);
      this.#events.push({ type: "toolcall_end", contentIndex, toolCall: block, partial });
    }
  }

  done(): void {
    this.#end();
    const reason = this.#message.stopReason === "toolUse" ? "toolUse" : "stop";
    this.#events.push({ type: "done", reason, message: this.#message });
    this.#events.end();
  }

  fail(reason: "error" | "aborted", error: unknown): void {
    this.#message.stopReason = reason;
    this.#message.errorMessage = error instanceof Error ? error.message : String(error);
    this.#events.push({ type: "error", reason, error: this.#message });
    this.#events.end();
  }
}

class Counter {
  #textDeltas = 0;
  #textChars = 0;
  #argumentDeltas = 0;

  take(event: Event): void {
    if (event.type !== "message_update") return;
    const update = event.assistantMessageEvent;
    if (update.type === "text_delta") {
      this.#textDeltas++;
      this.#textChars += update.delta.length;
    } else if (update.type === "toolcall_delta") {
      this.#argumentDeltas++;
    }
  }

  outcome(messages: readonly AnyMessage[], error?: unknown): Outcome {
    return {
      textDeltas: this.#textDeltas,
      textChars: this.#textChars,
      argumentDeltas: this.#argumentDeltas,
      messages: messages.filter(isSaid).map(toPlain),
      ...(error === undefined ? {} : { error: reasonOf(error) }),
    };
  }
}

function throwUnlessDone(last: AnyMessage | undefined): void {
  if (!last || !isSaid(last) || last.role !== "assistant") throw new Error("There is no answer.");
  if (last.stopReason !== "stop") throw new Error(last.errorMessage ?? last.stopReason);
}

/** Those of the system, by which 0.87 tells the model of its tools, are nothing that was said. */
function isSaid(message: AnyMessage): message is Message {
  return ["user", "assistant", "toolResult"].includes(message.role);
}

/** Remembers what was made of an array, as it is the same one for many runs. */
function once<In extends object, Out>(make: (from: In) => Out): (from: In) => Out {
  const made = new WeakMap<In, Out>();
  return (from) => {
    let out = made.get(from);
    if (out === undefined) made.set(from, (out = make(from)));
    return out;
  };
}

const messagesOf = once((history: readonly Plain[]): Message[] => history.map(toMessage));

function toMessage({ role, text: said, calls = [], answers = "", name = "" }: Plain): Message {
  if (role === "user") return { role, content: said, timestamp: 0 };
  if (role === "tool") {
    const content = [text(said)];
    const call = { toolCallId: answers, toolName: name };
    return { role: "toolResult", ...call, content, isError: false, timestamp: 0 };
  }
  const content: Assistant["content"] = said === "" ? [] : [text(said)];
  for (const { id, name, input } of calls) {
    // It came as JSON, which its type does not say.
    content.push({ type: "toolCall", id, name, arguments: input as JsonObject });
  }
  return assistant(content, calls.length > 0 ? "toolUse" : "stop");
}

function text(text: string): Text {
  return { type: "text", text };
}

function assistant(content: Assistant["content"], stopReason: "stop" | "toolUse"): Assistant {
  return {
    role: "assistant",
    content,
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: { ...noUsage, cost: { ...noCost } },
    stopReason,
    timestamp: 0,
  };
}

function toPlain(message: Message): Plain {
  const { content } = message;
  const blocks = typeof content === "string" ? [text(content)] : content;
  const said = blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
  if (message.role === "toolResult") {
    return { role: "tool", text: said, answers: message.toolCallId, name: message.toolName };
  }
  const calls = blocks
    .filter((block) => block.type === "toolCall")
    .map(({ id, name, arguments: input }) => ({ id, name, input }));
  return { role: message.role, text: said, ...(calls.length === 0 ? {} : { calls }) };
}
