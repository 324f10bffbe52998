import {
  Agent,
  type AgentEvent,
  agentLoop,
  type AgentMessage,
  type AgentTool,
  isLlmMessage,
} from "@gyre/agent";
import {
  Accumulator,
  type ApiProvider,
  AssistantMessageEventStream,
  type Model,
  type StreamFn,
} from "@gyre/ai";
import { anthropicMessages } from "@gyre/ai/providers/anthropic-messages";
import { openaiCompletions } from "@gyre/ai/providers/openai-completions";
import {
  type Answer,
  type HttpWork,
  type Outcome,
  type Peer,
  type Plain,
  formatReason,
  buildSchema,
  type Tool,
  type Work,
} from "../peer.ts";
import { Writer } from "../../src/library/writer.ts";
import { once } from "../once.ts";
import { Tally } from "../tally.ts";

const NONE: readonly never[] = [];
const toHistory = once((history: readonly Plain[]) => history.map(toMessage));
const toTools = once((tools: readonly Tool[]) => tools.map(toTool));
const model: Model = { id: "bench", name: "Bench", api: "bench", provider: "bench" };

/** The loop by itself. Listeners are the agent's, so where there is one it is the agent that runs. */
const gyre: Peer = {
  name: "Gyre",
  imports: ["@gyre/agent"],
  run: (work) => (work.listener ? runAgent(work) : runLoop(work)),
  async idle(work) {
    const agent = agentFor(work);
    await agent.prompt("go");
    return agent;
  },
  anthropic: (work) => read(anthropicMessages(), work),
  openai: (work) => read(openaiCompletions(), work),
  stallGuard: (work, ms) => runLoop(work, { watchdog: { contentMs: ms }, retry: false }),
};
export default gyre;

export const agent: Peer = { ...gyre, name: "Gyre Agent", run: (work) => runAgent(work) };

/** The stateless loop, read as a stream. */
async function runLoop(work: Work, guard: object = {}): Promise<Outcome> {
  const tally = new Tally();
  const context = {
    messages: toHistory(work.history ?? NONE),
    tools: toTools(work.tools ?? NONE),
  };
  const config = {
    model,
    maxToolConcurrency: Number.POSITIVE_INFINITY,
    ...(work.hook ? { transformContext: createHook(work.hook) } : {}),
    ...guard,
  };
  const prompt = toMessage({ role: "user", text: "go" });
  const stream = agentLoop([prompt], context, config, work.signal, streamFn(work));
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

/** The agent with a memory, and a listener besides. */
async function runAgent(work: Work): Promise<Outcome> {
  const tally = new Tally();
  const agent = agentFor(work);
  const { listener } = work;
  if (listener) agent.subscribe((event) => listener(event.type));
  agent.subscribe((event) => {
    count(tally, event);
    return work.event?.();
  });
  const abort = (): void => agent.abort();
  work.signal?.addEventListener("abort", abort);
  try {
    await agent.prompt("go");
    return toOutcome(tally, agent.state.messages);
  } catch (error) {
    return toOutcome(tally, agent.state.messages, error);
  }
}

function agentFor(work: Work): Agent {
  return new Agent({
    streamFn: streamFn(work),
    maxToolConcurrency: Number.POSITIVE_INFINITY,
    model,
    messages: toHistory(work.history ?? NONE),
    tools: toTools(work.tools ?? NONE),
    ...(work.hook ? { transformContext: createHook(work.hook) } : {}),
    // What a listener throws would be a process warning.
    onError: () => {},
  });
}

function createHook(hook: () => void) {
  return (messages: readonly AgentMessage[]): readonly AgentMessage[] => {
    hook();
    return messages;
  };
}

function streamFn(work: Work): StreamFn {
  let asked = 0;
  return (model, _context, options) => {
    const answer = work.answer(asked++);
    const stream = new AssistantMessageEventStream();
    void pump(answer, new Accumulator(stream, model, 0), options?.signal);
    return stream;
  };
}

async function pump(answer: Answer, out: Accumulator, signal?: AbortSignal): Promise<void> {
  const writer = new Writer(out);
  try {
    for await (const parts of answer) {
      if (signal?.aborted) return;
      for (const part of parts) writer.write(part);
    }
    writer.write({ type: "end" });
  } catch (error) {
    out.fail(formatReason(error), { kind: "network" });
  }
}

function toOutcome(tally: Tally, messages: readonly AgentMessage[], error?: unknown): Outcome {
  return tally.outcome(() => messages.map(toPlain), error);
}

function count(tally: Tally, event: AgentEvent): void {
  if (event.type !== "message_update") return;
  const update = event.assistantMessageEvent;
  if (update.type === "text_delta") tally.text(update.delta);
  else if (update.type === "toolcall_delta") tally.argument();
}

function toTool(tool: Tool): AgentTool {
  return {
    name: tool.name,
    description: tool.description,
    parameters: buildSchema(tool),
    concurrent: true,
    execute: (input, { signal }) => tool.run(input, signal),
  };
}

function toMessage({ role, text, calls = [], answers, name }: Plain): AgentMessage {
  if (role === "user") return { role, content: text, timestamp: 0 };
  if (role === "tool") {
    return {
      role: "toolResult",
      toolCallId: answers ?? "",
      toolName: name ?? "",
      content: [{ type: "text", text }],
      isError: false,
      timestamp: 0,
    };
  }
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  return {
    role,
    content: [
      ...(text === "" ? [] : [{ type: "text" as const, text }]),
      ...calls.map(({ id, name, input }) => ({
        type: "toolCall" as const,
        id,
        name,
        arguments: input,
      })),
    ],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage,
    stopReason: calls.length > 0 ? "toolUse" : "stop",
    timestamp: 0,
  };
}

function toPlain(message: AgentMessage): Plain {
  if (!isLlmMessage(message)) throw new Error(`Not a message for a model: ${message.role}`);
  const blocks = typeof message.content === "string" ? [] : message.content;
  const text =
    typeof message.content === "string"
      ? message.content
      : blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
  if (message.role === "toolResult") {
    return { role: "tool", text, answers: message.toolCallId, name: message.toolName };
  }
  const calls = blocks.filter((block) => block.type === "toolCall");
  return {
    role: message.role === "assistant" ? "assistant" : "user",
    text,
    ...(calls.length === 0
      ? {}
      : {
          calls: calls.map(({ id, name, arguments: input }) => ({ id, name, input })),
        }),
  };
}

async function read(provider: ApiProvider, work: HttpWork): Promise<void> {
  const service: Model = { ...model, api: provider.api, baseUrl: work.baseUrl };
  const stream = agentLoop(
    [toMessage({ role: "user", text: "go" })],
    { messages: [] },
    { model: service },
    work.signal,
    (model, context, options) => provider.stream(model, context, { ...options, apiKey: "key" }),
  );
  for await (const event of stream) {
    if (event.type === "agent_end" && event.stop !== "done") {
      throw new Error(`The run ended in "${event.stop}": ${event.finalMessage?.errorMessage}`);
    }
    if (event.type !== "message_update") continue;
    const update = event.assistantMessageEvent;
    if (update.type === "text_delta") work.text(update.delta);
  }
}
