import type {
  AgentMessage,
  AgentTool,
  AgentToolResult,
  PartialOutput,
  PendingCall,
  PendingCallOf,
  ToolReturn,
} from "@gyre/agent";
import type { FailureKind, FileSource, ToolOutcome, UserContent } from "@gyre/ai";

/** A text or a thought of a message. Only the last block of a message that streams is `streaming`. */
export interface TextPart {
  readonly type: "text" | "reasoning";
  readonly text: string;
  readonly state: "streaming" | "done";
}

/** A picture or a file. */
export interface FilePart {
  readonly type: "file";
  readonly mediaType: string;
  readonly name?: string;
  /** For `src` and `href`. Absent where the contents are in a store: `readFile(source)` of the agent has them. */
  readonly url?: string;
  readonly source: FileSource;
}

/** A place that a text is based on. */
export interface SourcePart {
  readonly type: "source";
  readonly url?: string;
  readonly title?: string;
  /** What it says there. */
  readonly text?: string;
  /** Of a document, from 1. */
  readonly page?: number;
}

/** A tool that the service of the model ran by itself. */
export interface ServiceToolPart {
  readonly type: "serviceTool";
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  readonly output: unknown;
}

/** Why an answer failed. */
export interface ErrorPart {
  readonly type: "error";
  readonly text: string;
  readonly kind: FailureKind;
}

/** A message of a role of the application's own. */
export interface CustomPart {
  readonly type: "custom";
  readonly message: AgentMessage;
}

/** The question whether a call may run. */
export interface ToolApproval extends Omit<PendingCall, "toolCall"> {
  /** What was answered; the answer is sent once all calls that wait have one. */
  readonly approved?: boolean;
}

interface OfTool<Name> {
  readonly type: "tool";
  /** Of the call: for `approve` and `deny`. */
  readonly id: string;
  readonly name: Name;
}

/** How a call stands. The states have the names of those of the AI SDK. */
type ToolProgress<Input, Output> =
  /** The model writes its arguments. */
  | (NoResult & { readonly state: "input-streaming"; readonly input: PartialOutput<Input> })
  /** It runs, or is about to. `progress`: what the tool has reported on the way. */
  | (NoResult & {
      readonly state: "input-available";
      readonly input: Input;
      readonly isRunning: boolean;
      readonly progress?: unknown;
    })
  | (NoResult & {
      readonly state: "approval-requested" | "approval-responded";
      readonly input: Input;
      readonly approval: ToolApproval;
    })
  | {
      readonly state: "output-available";
      readonly input: Input;
      readonly output: Output;
      readonly errorText?: undefined;
    }
  | {
      readonly state: "output-error";
      readonly input: Input;
      readonly output?: undefined;
      readonly errorText: string;
      readonly outcome: ToolOutcome;
    }
  | (NoResult & {
      readonly state: "output-denied";
      readonly input: Input;
      readonly reason: string;
    });

/** So that a page can look at a result without a look at the state. */
interface NoResult {
  readonly output?: undefined;
  readonly errorText?: undefined;
}

/** A call with what became of it: `name` narrows `input` and `output`, `state` says which of them there are. */
export type ToolPart<Tool = AgentTool> = Tool extends AgentTool & { name: infer Name }
  ? OfTool<Name> & ToolProgress<PendingCallOf<Tool>["toolCall"]["arguments"], OutputOf<Tool>>
  : never;

/** What a tool gives a page: the value that it returns, else the text or the content of its result. */
export type OutputOf<Tool> = Tool extends { execute(...args: never[]): infer Return }
  ? OutputOfReturn<Awaited<Return>>
  : never;

type OutputOfReturn<Return> = ToolReturn extends Return ? unknown : OutputOfValue<Return>;
type OutputOfValue<Value> = Value extends string
  ? string
  : Value extends readonly UserContent[]
    ? string | readonly UserContent[]
    : Value extends AgentToolResult<infer Details>
      ? Details | string | readonly UserContent[]
      : Value;

/** A part of a message, ready to be shown. */
export type ViewPart<Tool = AgentTool> =
  | TextPart
  | ToolPart<Tool>
  | ServiceToolPart
  | FilePart
  | SourcePart
  | ErrorPart
  | CustomPart;

/**
 * A message as a page shows it. It does not change: another object stands in its place when something of it has
 * changed, and the same one until then, so that components can be memoized. Results are in the parts of their calls.
 */
export interface ViewMessage<Tool = AgentTool> {
  /** For `key`: the same from the moment a message is first shown. */
  readonly id: string;
  readonly role: "user" | "assistant" | "custom";
  readonly parts: readonly ViewPart<Tool>[];
  /**
   * `pending`: a prompt that is being sent. `failed`: one that was not delivered, or an answer that failed.
   * `aborted`: an answer that was cut off.
   */
  readonly state: "pending" | "streaming" | "done" | "failed" | "aborted";
  /** When it was made, in milliseconds since 1970. */
  readonly timestamp: number;
  /** Why a prompt was not delivered. */
  readonly error?: string;
}
