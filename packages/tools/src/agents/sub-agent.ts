import {
  Agent,
  type AgentEndEvent,
  type AgentEvent,
  type AgentMessage,
  type AgentOptions,
  type AgentTool,
  type AgentToolResult,
  type Caller,
  explainEnd,
  lastText,
  type Middleware,
  OutputError,
  present,
} from "@gyre/agent";
import {
  addUsage,
  type AssistantMessage,
  type Clock,
  type JsonSchema,
  textOf,
  type Usage,
  type UserContent,
} from "@gyre/ai";
import { cutText } from "@gyre/ai/text";
import type { ToolEnv } from "../contract/env.ts";
import { looseRecord } from "../contract/loose.ts";
import { grouped } from "../text/text.ts";

/** What tools that ask models are made of. */
export interface SubAgentParts<Options> {
  env: ToolEnv;
  /** The tools that were made before, without those that are the agent's own. */
  shared: ReadonlyMap<string, AgentTool>;
  options: Options & { middleware?: readonly Middleware[] };
}

/** An answer is cut beyond this. */
export const MAX_ANSWER_CHARS = 50_000;
/** Progress is reported at most this often. */
export const PROGRESS_MS = 250;
/** The end of what is being said, shown as progress. */
const PROGRESS_TEXT_CHARS = 500;
/** Of the arguments of a call, shown as progress. */
const PROGRESS_ARGS_CHARS = 200;
/** Calls that are listed; those before them are counted. */
export const MAX_LISTED_CALLS = 50;

/** A call that a sub-agent made, for people. */
export interface SubAgentCall {
  readonly tool: string;
  /** What it is about, as its tool describes it. */
  readonly title: string;
  readonly state: "running" | "ok" | "failed";
  /** Of a sub-agent of its own: its calls, the last ones. */
  readonly calls?: readonly SubAgentCall[];
}

/** What an agent that works for another came to; the `details` of the tool's result. */
export interface SubAgentDetails {
  stop: AgentEndEvent["stop"];
  turns: number;
  usage: Usage;
  /** With `stop: "limit"`: which one. */
  limit?: AgentEndEvent["limit"];
  /** The answer, when a schema was asked for. */
  value?: unknown;
  /** All that was said, if it is to be kept. */
  messages?: readonly AgentMessage[];
  /** How many calls it made, and the last of them. */
  callCount: number;
  calls: readonly SubAgentCall[];
}

/** What an agent that works for another does right now; the `details` of an update. */
export interface SubAgentProgress {
  turns: number;
  /** The last call: name and arguments, shortened. */
  tool?: string;
  /** The end of what it says. */
  text?: string;
  usage: Usage;
  /** How many calls it made so far, and the last of them. */
  callCount: number;
  calls: readonly SubAgentCall[];
}

export interface SubAgentJob {
  /** What messages call it: "sub-agent". */
  who: string;
  agent: AgentOptions & { clock: Clock };
  prompt: string;
  /** After the prompt, in the same message. */
  attachments?: readonly UserContent[];
  /** Asks for an answer of this form. */
  schema?: JsonSchema;
  /** The call that it works for. */
  caller: Caller;
  onUpdate: (partial: AgentToolResult) => void;
  keepMessages?: boolean;
}

/**
 * Runs an agent on one prompt, for a tool that another agent called. An abort of the call
 * reaches it. The result reports whatever it comes to: an answer, or why there is
 * none with what it had said until then. Rejects only where it cannot be started.
 */
export async function runSubAgent(job: SubAgentJob): Promise<AgentToolResult> {
  const { attachments = [], caller, prompt, schema } = job;
  const agent = new Agent(job.agent);
  const calls = new CallList(job.agent.tools ?? []);
  const progress = new Progress(job.agent.clock, job.onUpdate, () => ({
    usage: calls.usage,
    ...calls.facts,
  }));
  agent.subscribe((event) => {
    calls.see(event);
    progress.see(event);
  });
  try {
    if (schema === undefined) {
      return toResult(job, await agent.prompt(prompt, { attachments, caller }), calls);
    }
    const end = await agent.prompt(prompt, { attachments, caller, output: schema });
    try {
      return toResult(job, end, calls, { value: end.output });
    } catch (error) {
      if (error instanceof OutputError) {
        return toResult(job, end, calls, { missing: error.message });
      }
      throw error;
    }
  } finally {
    progress.stop();
  }
}

function toResult(
  job: SubAgentJob,
  end: AgentEndEvent,
  calls: CallList,
  typed?: { value: unknown } | { missing: string },
): AgentToolResult {
  const { stop, turns, usage, limit, messages } = end;
  const details: SubAgentDetails = {
    stop,
    turns,
    usage,
    ...(limit !== undefined && { limit }),
    ...(typed && "value" in typed && { value: typed.value }),
    ...(job.keepMessages && { messages }),
    ...calls.facts,
  };
  const give = (text: string, isError: boolean): AgentToolResult => ({
    content: [{ type: "text", text }],
    details,
    usage,
    ...(isError && { isError }),
  });
  if (typed && "value" in typed) return give(JSON.stringify(typed.value), false);
  const answer = shortened(lastText(messages));
  const failure = explainEnd(job.who, end) ?? (typed && typed.missing);
  if (failure === undefined && answer !== "") return give(answer, false);
  const partial = answer === "" ? "It had said nothing." : `What it had said last:\n${answer}`;
  return give(`${failure ?? `The ${job.who} ended without an answer.`}\n${partial}`, true);
}

function shortened(answer: string): string {
  if (answer.length <= MAX_ANSWER_CHARS) return answer;
  return `${cutText(answer, MAX_ANSWER_CHARS)}\n[Cut after ${grouped(MAX_ANSWER_CHARS)} of ${grouped(answer.length)} characters. Ask again for a shorter answer, or for the missing part alone.]`;
}

/** The calls of a sub-agent as they are now, and what it has used. */
class CallList {
  readonly #tools: readonly AgentTool[];
  readonly #calls = new Map<string, SubAgentCall>();
  #count = 0;
  #usage: Usage = {};

  constructor(tools: readonly AgentTool[]) {
    this.#tools = tools;
  }

  get facts(): Pick<SubAgentDetails, "callCount" | "calls"> {
    return { callCount: this.#count, calls: [...this.#calls.values()] };
  }

  /** What it and its sub-agents have used so far. */
  get usage(): Usage {
    return this.#usage;
  }

  see(event: AgentEvent): void {
    if (event.type === "message_end" && event.message.role === "assistant") {
      this.#usage = addUsage(this.#usage, event.message.usage);
    } else if (event.type === "tool_execution_start") {
      const { toolName: tool, args } = event;
      const presentation = this.#tools.find(({ name }) => name === tool)?.presentation;
      const title = present(() => presentation?.title?.(args, (text) => text));
      this.#count++;
      this.#calls.set(event.toolCallId, {
        tool,
        title: cutText(title ?? JSON.stringify(args), PROGRESS_ARGS_CHARS),
        state: "running",
      });
      const [oldest] = this.#calls.keys();
      if (this.#calls.size > MAX_LISTED_CALLS && oldest !== undefined) this.#calls.delete(oldest);
    } else if (event.type === "tool_execution_update") {
      this.#change(event.toolCallId, readCalls(event.partialResult));
    } else if (event.type === "tool_execution_end") {
      const state = event.isError ? "failed" : "ok";
      this.#usage = addUsage(this.#usage, event.result.usage ?? {});
      this.#change(event.toolCallId, { state, ...readCalls(event.result) });
    }
  }

  #change(id: string, change: Partial<SubAgentCall>): void {
    const call = this.#calls.get(id);
    if (call) this.#calls.set(id, { ...call, ...change });
  }
}

/** The calls of a sub-agent, where a result is that of one. */
function readCalls({ details }: AgentToolResult): Pick<SubAgentCall, "calls"> {
  const { calls, callCount } = looseRecord(details);
  if (!Array.isArray(calls) || typeof callCount !== "number") return {};
  const known: readonly SubAgentCall[] = calls;
  return { calls: known };
}

/** Reports what an agent does, not more often than a person can read. */
class Progress {
  readonly #clock: Clock;
  readonly #send: (partial: AgentToolResult) => void;
  readonly #facts: () => Pick<SubAgentProgress, "usage" | "callCount" | "calls">;
  #turns = 0;
  #tool: string | undefined;
  #message: AssistantMessage | undefined;
  #sentAt: number | undefined;
  #cancel: (() => void) | undefined;

  constructor(
    clock: Clock,
    send: (partial: AgentToolResult) => void,
    facts: () => Pick<SubAgentProgress, "usage" | "callCount" | "calls">,
  ) {
    this.#clock = clock;
    this.#send = send;
    this.#facts = facts;
  }

  see(event: AgentEvent): void {
    if (event.type === "turn_start") this.#turns++;
    else if (event.type === "tool_execution_start") {
      this.#tool = `${event.toolName} ${cutText(JSON.stringify(event.args), PROGRESS_ARGS_CHARS)}`;
    } else if (event.type === "message_update") this.#message = event.message;
    else if (event.type !== "tool_execution_update" && event.type !== "tool_execution_end") return;
    this.#touch();
  }

  stop(): void {
    this.#cancel?.();
  }

  #touch(): void {
    if (this.#cancel) return;
    const wait = this.#sentAt === undefined ? 0 : this.#sentAt + PROGRESS_MS - this.#clock.now();
    if (wait <= 0) this.#report();
    else this.#cancel = this.#clock.after(wait, () => this.#report());
  }

  #report(): void {
    this.#cancel = undefined;
    this.#sentAt = this.#clock.now();
    const text = this.#message && textOf(this.#message).slice(-PROGRESS_TEXT_CHARS);
    const details: SubAgentProgress = {
      turns: this.#turns,
      ...(this.#tool !== undefined && { tool: this.#tool }),
      ...(text && { text }),
      ...this.#facts(),
    };
    const lines = [`Turn ${this.#turns}.`, this.#tool, text].filter((line) => line);
    this.#send({ content: [{ type: "text", text: lines.join("\n") }], details });
  }
}
