import type { ToolCall, UserContent } from "@gyre/ai";
import type {
  AgentEndEvent,
  AgentTool,
  AgentToolResult,
  Decision,
  PendingCall,
  RunEvent,
  ToolEvent,
  ToolReturn,
} from "./types.ts";

/** The arguments of a tool. */
export type ArgumentsOf<Tool> = Tool extends {
  execute(args: infer Args, ...rest: never[]): unknown;
}
  ? Args
  : never;

/** What a tool gives the application, in `details` of its result. */
type DetailsOf<Tool> = Tool extends { execute(...args: never[]): infer Return }
  ? DetailsOfReturn<Awaited<Return>>
  : never;

type DetailsOfReturn<Return> = ToolReturn extends Return ? unknown : DetailsOfValue<Return>;
type DetailsOfValue<Value> = Value extends string | readonly UserContent[]
  ? never
  : Value extends AgentToolResult<infer Details>
    ? Details
    : Value;

type NamedEvent<Tool> = Tool extends { name: infer Name }
  ? ToolEvent<Name, ArgumentsOf<Tool>, DetailsOf<Tool>>
  : never;

type NamedPending<Tool> = Tool extends { name: infer Name }
  ? PendingCall<ToolCall<Name, ArgumentsOf<Tool>>>
  : never;

/**
 * The events of an agent with these tools: `toolName` narrows `args` and `result.details`. What
 * the types do not know: calls of tools that the model made up, and of tools that come later, by
 * `setTools()`, a prompt or a handoff. Such events have other names. Of an agent that is made with
 * `tools: []` no events of calls are known; one that is made without `tools` has those of any name.
 */
export type AgentEventOf<Tool extends AgentTool> =
  | RunEvent
  | NamedEvent<Tool>
  | AgentEndEvent<NamedPending<Tool>>;

/** The calls of these tools that wait for a person: `toolCall.name` narrows `toolCall.arguments`. */
export type PendingCallOf<Tool extends AgentTool> = NamedPending<Tool>;

/** A person's answers to calls of these tools: `args` of an approval are those of one of them. */
export type DecisionOf<Tool extends AgentTool> = Decision<ArgumentsOf<Tool>>;
