import type { AnySchema, InferArguments, ToolSchema, Usage } from "@gyre/ai";
import type { Agent } from "./agent.ts";
import type { AgentEnd } from "./answer.ts";
import type {
  AgentEvent,
  AgentStop,
  AgentTool,
  AgentToolResult,
  ToolContext,
} from "../contract/types.ts";
import { OutputError } from "./output.ts";
import type { PromptInput } from "../transcript/input.ts";
import { explainEnd, lastText } from "./outcome.ts";

/** The arguments of an agent as a tool, unless it is given an `input`. */
export type PromptSchema = {
  readonly type: "object";
  readonly properties: {
    readonly prompt: { readonly type: "string"; readonly description: string };
  };
  readonly required: readonly ["prompt"];
};

/** An agent as a tool of another: see `Agent.asTool`. */
export interface AgentToolOptions<
  Name extends string = string,
  S extends ToolSchema = ToolSchema,
  O extends AnySchema = AnySchema,
> {
  name: Name;
  /** What it is good at, for the model that may call it. */
  description: string;
  /** The arguments of a call. Default: `{ prompt: string }`. */
  input?: S;
  /** The form of the answer: the model reads it as JSON, the application finds it in `details`. */
  output?: O;
  /** What the agent is asked. Default: `args.prompt`, or all arguments as JSON. */
  prompt?(args: InferArguments<S>): PromptInput;
  /** Receives every event of every call, with the id of the call. An error of it ends nothing. */
  onEvent?: (event: AgentEvent, call: { id: string }) => void;
  /** Asks a person before the agent starts. */
  needsApproval?: AgentTool["needsApproval"];
  /** Default 3,600,000: a call, with all that the agent does. */
  timeoutMs?: number;
  /** Default true: calls of one message run together, and share what is left of the limits. */
  concurrent?: boolean;
}

/** What an agent that worked for another came to; the `details` where it has no `output`. */
export interface AgentToolDetails {
  stop: AgentStop;
  turns: number;
  usage: Usage;
}

/** A tool that is an agent. Its `details` are what `output` describes, where it is given. */
export type AgentAsTool<Name extends string, S extends ToolSchema, O extends AnySchema> = AgentTool<
  S,
  InferArguments<S>,
  AgentToolResult<[O] extends [never] ? AgentToolDetails : InferArguments<O>>
> & { name: Name };

/** What an agent that works for another does right now; the `details` of an update. */
export interface AgentToolProgress {
  turns: number;
  /** The tool that it has called last. */
  tool?: string;
}

/** Runs an agent that was made for the call. Rejects only where it cannot be started. */
export async function runAgentTool(
  agent: Agent,
  tool: AgentToolOptions,
  args: Record<string, unknown>,
  context: ToolContext,
): Promise<AgentToolResult> {
  const { name, output, onEvent } = tool;
  const call = { id: context.id };
  const progress: AgentToolProgress = { turns: 0 };
  agent.subscribe((event) => {
    onEvent?.(event, call);
    if (event.type === "turn_start") progress.turns++;
    else if (event.type === "tool_execution_start") progress.tool = event.toolName;
    else return;
    const text = lastText(agent.state.messages);
    context.update({ content: [{ type: "text", text }], details: { ...progress } });
  });
  const prompt = makePrompt(tool, args);
  const options = { caller: context };
  const end: AgentEnd<unknown> = output
    ? await agent.prompt(prompt, { ...options, output })
    : await agent.prompt(prompt, options);
  return toResult(name, end, output !== undefined);
}

function makePrompt(tool: AgentToolOptions, args: Record<string, unknown>): PromptInput {
  if (tool.prompt) return tool.prompt(args);
  return typeof args["prompt"] === "string" ? args["prompt"] : JSON.stringify(args);
}

/** The answer, or why there is none with what was said until then. */
function toResult(name: string, end: AgentEnd<unknown>, isTyped: boolean): AgentToolResult {
  const { stop, turns, usage, messages } = end;
  const details: AgentToolDetails = { stop, turns, usage };
  let failure = explainEnd(`agent "${name}"`, end);
  if (isTyped) {
    try {
      const value = end.output;
      return { content: [{ type: "text", text: JSON.stringify(value) }], details: value, usage };
    } catch (error) {
      if (!(error instanceof OutputError)) throw error;
      failure ??= error.message;
    }
  }
  const text = lastText(messages);
  if (failure === undefined && text !== "")
    return { content: [{ type: "text", text }], details, usage };
  failure ??= `The agent "${name}" ended without an answer.`;
  const last = text === "" ? "It had said nothing." : `What it had said last:\n${text}`;
  return {
    content: [{ type: "text", text: `${failure}\n${last}` }],
    isError: true,
    reason: failure,
    details,
    usage,
  };
}
