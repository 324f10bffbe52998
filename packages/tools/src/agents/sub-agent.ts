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
} from "@gyre/agent";
import {
  type AssistantMessage,
  type Clock,
  type JsonSchema,
  textOf,
  type Usage,
  type UserContent,
} from "@gyre/ai";
import type { ToolEnv } from "../contract/env.ts";
import { grouped } from "../text/text.ts";
import { cutText } from "../text/truncate.ts";

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
}

/** What an agent that works for another does right now; the `details` of an update. */
export interface SubAgentProgress {
  turns: number;
  /** The last call: name and arguments, shortened. */
  tool?: string;
  /** The end of what it says. */
  text?: string;
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
  const progress = new Progress(job.agent.clock, job.onUpdate);
  agent.subscribe((event) => progress.see(event));
  try {
    if (schema === undefined)
      return toResult(job, await agent.prompt(prompt, { attachments, caller }));
    const end = await agent.prompt(prompt, { attachments, caller, output: schema });
    try {
      return toResult(job, end, { value: end.output });
    } catch (error) {
      if (error instanceof OutputError) return toResult(job, end, { missing: error.message });
      throw error;
    }
  } finally {
    progress.stop();
  }
}

function toResult(
  job: SubAgentJob,
  end: AgentEndEvent,
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

/** Reports what an agent does, not more often than a person can read. */
class Progress {
  readonly #clock: Clock;
  readonly #send: (partial: AgentToolResult) => void;
  #turns = 0;
  #tool: string | undefined;
  #message: AssistantMessage | undefined;
  #sentAt: number | undefined;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, send: (partial: AgentToolResult) => void) {
    this.#clock = clock;
    this.#send = send;
  }

  see(event: AgentEvent): void {
    if (event.type === "turn_start") this.#turns++;
    else if (event.type === "tool_execution_start") {
      this.#tool = `${event.toolName} ${cutText(JSON.stringify(event.args), PROGRESS_ARGS_CHARS)}`;
    } else if (event.type === "message_update") this.#message = event.message;
    else return;
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
    };
    const lines = [`Turn ${this.#turns}.`, this.#tool, text].filter((line) => line);
    this.#send({ content: [{ type: "text", text: lines.join("\n") }], details });
  }
}
