import {
  toJsonSchema,
  type AssistantMessage,
  type AssistantMessageEvent,
  type Clock,
  type ConnectionWatchdog,
  type EventStream,
  type Failure,
  type FailureKind,
  type InferArguments,
  type Message,
  type Model,
  type ProtocolClient,
  type RetryOptions,
  type StreamFn,
  type StreamOptions,
  type ThinkingLevel,
  type TokenCalibration,
  type Tool,
  type ToolCall,
  type ShortenedResult,
  type ToolOutcome,
  type ToolResultMessage,
  type ToolSchema,
  type Usage,
  type UserContent,
} from "@gyre/ai";
import { checkShape } from "#checks";
import type { Compaction, ContextConfig } from "./compaction.ts";
import type { Middleware } from "./middleware.ts";
import type { ToolPresentation } from "./presentation.ts";

/**
 * An application's own messages, added by declaration merging. They live in the
 * transcript and reach the model only through `convertToLlm`.
 */
export interface CustomAgentMessages {}

/** What a transcript is made of: messages for a model, and those of the application. */
export type AgentMessage = Message | CustomAgentMessages[keyof CustomAgentMessages];

/** What a tool returns. `details` is for the application; the model sees `content`. */
export interface AgentToolResult<D = unknown> {
  content: UserContent[];
  details?: D;
  /** Set by the loop where it has made the content shorter for the transcript. */
  shortened?: ShortenedResult;
  isError?: boolean;
  /** How the call ended. Set by the loop; a tool sets it to say more than `isError` does. */
  outcome?: ToolOutcome;
  /** Why it ended so, in a sentence for people, if it is not `ok`. */
  reason?: string;
  /** When every result of a message has this, the run ends after the turn. */
  terminate?: boolean;
  /** What the tool spent on models of its own: counted into the run's usage and limits. */
  usage?: Usage;
}

/** What a tool may ask of the run that called it. */
export interface ToolHost {
  /** Runs another tool through the same validation and middleware. */
  call(name: string, args: Record<string, unknown>): Promise<AgentToolResult>;
  /**
   * What is left of the run's tokens, cost and time right now, for a tool that spends
   * some of it. A limit that the run does not have is absent; 0 or less: used up.
   */
  left?(): Pick<Limits, "maxTotalTokens" | "maxCostUsd" | "maxDurationMs">;
  /**
   * Counts what the tool spends on models of its own at once, so that calls that run beside it
   * see what is left. After it, `usage` of the result is for readers and is not counted again.
   */
  spend?(usage: Usage): void;
  /**
   * The same for every attempt of this call, also by another process after a crash, and for no
   * other call: `session:call`, for a service that does a thing once for each key. An agent without
   * a `sessionId` has other keys in each run. Absent where no agent calls the tool.
   */
  readonly key?: string;
}

/** What a tool gets beside its arguments. */
export interface ToolContext {
  /** The id of the call. */
  id: string;
  /** Fires when the run is aborted and when the call times out. */
  signal: AbortSignal;
  /** Reports a partial result to listeners. */
  update: (partial: AgentToolResult) => void;
  host: ToolHost;
  /** The transcript so far, live: results of calls that run beside this one may be added. */
  messages: readonly AgentMessage[];
}

/**
 * The call of a tool that a run works for: the `context` of the tool's `execute`. The run ends
 * when the call is aborted, spends what is left of the calling run and no more, and is counted
 * into its usage and limits once, turn by turn. Its own calls have the id of this one as
 * `parentId`. Where nothing is left the run does not start.
 */
export type Caller = Pick<ToolContext, "id" | "signal"> & {
  host: Pick<ToolHost, "left" | "spend" | "key">;
};

/** A value that JSON can hold. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue | undefined };

/**
 * What a tool may return: a text, blocks, a whole result, or any other JSON value, which the
 * model reads as JSON and the application finds in `details`.
 */
export type ToolReturn = AgentToolResult | UserContent[] | JsonValue;

/** What became of a call that a crash cut off. */
export type Recovered = ToolReturn | "again" | undefined;

/** A method, as `execute` is one: tools of different arguments go into one list. */
type ApprovalCheck<Args> = { check(args: Args): boolean | Promise<boolean> }["check"];

/** A tool that an agent can run. `defineTool` works out the types of arguments and result. */
export interface AgentTool<
  S extends ToolSchema = ToolSchema,
  Args = InferArguments<S>,
  Return = ToolReturn,
> extends Tool<S> {
  /** For people; the name, if absent. */
  label?: string;
  /**
   * Does the work. A throw becomes an error result. `context.signal` fires on abort and on
   * timeout; a tool that ignores it is abandoned after the grace time, and what it returns
   * later goes to `onLateResult`.
   */
  execute(args: Args, context: ToolContext): Return | Promise<Return>;
  /**
   * Whether a person has to approve a call: the run ends suspended, and goes on with
   * `continue({ decisions })` (R27).
   */
  needsApproval?: boolean | ApprovalCheck<Args>;
  /** How its calls are shown, and what they do. Without it, calls are shown by their arguments. */
  presentation?: ToolPresentation;
  /** May run together with neighboring calls whose tools are concurrent, too. */
  concurrent?: boolean;
  /** Running it twice is as good as once: it is run again after a crash. */
  idempotent?: boolean;
  /**
   * Called after a crash in place of `execute`, of a call that may have begun and has no result:
   * looks what became of it, by `context.host.key` say. Gives the result; `"again"`, and the call
   * is run as any other; or nothing, and the model reads that its effects are not known, as it
   * does after a throw. Not called of a tool that is `idempotent`.
   */
  recover?(args: Args, context: ToolContext): Recovered | Promise<Recovered>;
  timeoutMs?: number;
  abortGraceMs?: number;
}

/**
 * The same object, with the types of `args` and of what it returns worked out. Throws on what is
 * no tool, and says what to write instead.
 */
export function defineTool<
  const S extends ToolSchema,
  const Name extends string,
  Return extends ToolReturn,
>(
  tool: AgentTool<S, InferArguments<S>, Return> & { name: Name },
): AgentTool<S, InferArguments<S>, Return> & { name: Name } {
  checkTool(tool);
  return tool;
}

const NAME = /^[\w-]{1,128}$/;

/** Throws on what is no tool, and says what to write instead. */
export function checkTool(
  tool: Pick<AgentTool, "name" | "parameters"> & { execute: unknown },
): void {
  if ("asTool" in tool) {
    throw new TypeError("An agent is no tool: write agent.asTool({ name, description }).");
  }
  const { name, parameters, execute } = tool;
  if (!NAME.test(name ?? "")) {
    throw new TypeError(
      `The name of a tool has letters, digits, "_" and "-" alone: got ${JSON.stringify(name)}.`,
    );
  }
  if (typeof parameters !== "object" && typeof parameters !== "function") {
    throw new TypeError(`Tool "${name}" has no \`parameters\`: give its schema under that name.`);
  }
  if (typeof execute !== "function") {
    throw new TypeError(`Tool "${name}" has no function \`execute\`.`);
  }
  if (execute.length > 2) {
    throw new TypeError(
      `The function \`execute\` of tool "${name}" has ${execute.length} parameters: write execute(args, { id, signal, update, host, messages }).`,
    );
  }
  checkShape("tool", tool);
  const { type } = toJsonSchema(parameters);
  if (type !== undefined && type !== "object") {
    throw new TypeError(
      `The \`parameters\` of tool "${name}" are a schema of type ${JSON.stringify(type)}: arguments are an object, so give an object with properties.`,
    );
  }
}

/** Why a run ended. `stopped`: `shouldStopAfterTurn` said so. `sink`: the sink threw. */
export type AgentStop =
  | "done"
  | "error"
  | "aborted"
  | "limit"
  | "terminated"
  | "stopped"
  | "suspended"
  | "sink";

/** What a run may take at most. Past it, the run ends with `stop: "limit"`. */
export interface Limits {
  maxTurns?: number;
  /** Another name of `maxTurns`. */
  maxIterations?: number;
  maxTotalTokens?: number;
  maxDurationMs?: number;
  maxCostUsd?: number;
  /** Same name, arguments and result in a row. Default 3. */
  maxIdenticalCalls?: number;
}

/** Which limit ended a run: one of `Limits`, or one of those that are built in. */
export type LimitName =
  | Exclude<keyof Limits, "maxIterations">
  | "maxPausesInARow"
  | "maxTruncatedTurnsInARow";

/** A call that waits for a person's decision. */
export interface PendingCall<Call = ToolCall> {
  toolCall: Call;
  reason: string;
  /** What the call would do, as plain data of the middleware that asks. Safe to show. */
  access?: Readonly<Record<string, unknown>>;
  /** What exactly is approved: `approve` with another one leaves the call pending. */
  fingerprint?: string;
}

/** A person's answer to a call that waits. `result` stands in place of running the tool. */
export type Decision<Args = Record<string, unknown>> =
  /**
   * `fingerprint`: what exactly was approved, for middleware that computes one. `args`: what the
   * tool is run with in place of the arguments of the call; checked as those are. Of a call that
   * middleware made without an effect before it asked: `keep` has the numbers of the effects that are kept,
   * all without it; with `direct` they are discarded, and it is made again.
   */
  | {
      type: "approve";
      fingerprint?: string;
      args?: Args;
      keep?: readonly number[];
      direct?: boolean;
    }
  | { type: "deny"; reason?: string }
  | { type: "result"; result: AgentToolResult }
  /** Not decided yet: the call stays pending and the run ends suspended again. */
  | ({ type: "wait" } & Partial<Omit<PendingCall, "toolCall">>);

/**
 * What became of a call before a crash: its result, or a decision that was not acted on yet.
 * `"not begun"`: it had no effects, and runs now, through the middleware; not in a run that starts
 * with a prompt, which is newer than the call. `"run"`: it runs in any case.
 */
export type UnfinishedCall = AgentToolResult | Decision | "not begun" | "run";

/** What a run had done when a crash cut it off, as a journal has it. */
export interface InterruptedRun {
  /** Its answers. */
  turns: number;
  usage: Usage;
  /** Tokens, as they count towards `maxTotalTokens`. Default: those of `usage`. */
  tokens?: number;
  /** How long it ran, without the time in which no process did. */
  durationMs: number;
  /** Calls whose results ask for the run to end, and are in the transcript. */
  terminated?: readonly string[];
}

/** The last event of every run: how it ended, and what it produced. */
export interface AgentEndEvent<Pending = PendingCall> {
  type: "agent_end";
  /** This run's messages only: prompts, injected, assistant, results. */
  messages: AgentMessage[];
  stop: AgentStop;
  /** With `stop: "limit"`: which one. */
  limit?: LimitName;
  /** With `stop: "sink"`: why. */
  errorMessage?: string;
  turns: number;
  usage: Usage;
  /** The last assistant message of this run. */
  finalMessage?: AssistantMessage;
  /** Messages that were taken from a queue, not delivered, and returned to it. */
  undelivered: AgentMessage[];
  pending: Pending[];
}

interface EventOfCall<Name> {
  toolCallId: string;
  toolName: Name;
}

/** What happens to a call, by the name of its tool. */
export type ToolEvent<Name = string, Args = Record<string, unknown>, Details = unknown> =
  /** `args` are as the model sent them, before they are validated. */
  | ({ type: "tool_execution_start"; args: Args } & EventOfCall<Name>)
  | ({
      type: "tool_execution_update";
      args: Args;
      partialResult: AgentToolResult;
    } & EventOfCall<Name>)
  | ({
      type: "tool_execution_end";
      result: AgentToolResult<Details>;
      outcome: ToolOutcome;
      /** Why it is not `ok`, in a sentence for people. */
      reason?: string;
      /** Whether `outcome` is anything but `ok`. */
      isError: boolean;
      durationMs: number;
    } & EventOfCall<Name>);

/** What happens in a run, in order. The first is `agent_start`, the last `agent_end`. */
export type AgentEvent = RunEvent | ToolEvent | AgentEndEvent;

/** What happens in a run beside its calls and its end. */
export type RunEvent =
  | { type: "agent_start" }
  | { type: "turn_start" }
  | { type: "message_start"; message: AgentMessage }
  | {
      type: "message_update";
      /** The live partial message: copy what you keep. */
      message: AssistantMessage;
      assistantMessageEvent: AssistantMessageEvent;
    }
  | { type: "message_end"; message: AgentMessage }
  | { type: "turn_end"; message: AssistantMessage; toolResults: readonly ToolResultMessage[] }
  | {
      type: "retry";
      /** The attempt that failed: the first is 1. */
      attempt: number;
      /** How many there are at most, where they are counted. */
      maxAttempts?: number;
      delayMs: number;
      kind: string;
      errorMessage: string;
    }
  | {
      /**
       * The response has brought no content for this long: after 15 s, and each time that the
       * wait has doubled. It is not an error.
       */
      type: "waiting";
      phase: ContentPhase;
      /** With `phase: "call"`: the tool, as soon as it is known. */
      toolName?: string;
      silentMs: number;
    }
  | {
      /** Another model of `fallbackModels` is asked, at once. */
      type: "fallback";
      from: Pick<Model, "provider" | "id">;
      to: Pick<Model, "provider" | "id">;
      kind: string;
      errorMessage: string;
    }
  | {
      type: "compaction";
      /** Tokens, estimated. */
      before: number;
      after: number;
      reason: string;
      /** What is sent from here on in place of parts of the transcript. Plain data. */
      compaction: Compaction;
    }
  | { type: "limit"; limit: LimitName; value: number };

/** A run to iterate; its result is the messages that the run added. */
export type AgentEventStream = EventStream<AgentEvent, AgentMessage[]>;

/** Takes each event before anything else sees it; the loop waits for it. */
export type AgentSink = (event: AgentEvent) => void | Promise<void>;

/**
 * What a steering message does to calls that have not started: they are skipped (the
 * default), or run first. `redirect` skips them and cuts off a response that is being
 * streamed.
 */
export type SteeringPolicy = "skip-remaining" | "after-batch" | "redirect";
/** `steering` interrupts a run; `followUp` waits until it would otherwise end. */
export type QueueName = "steering" | "followUp";
/** How much of a queue is delivered at once: its first message, or all. */
export type QueueMode = "one-at-a-time" | "all";
/**
 * Which calls of a message run together. `auto`, the default: neighbors whose tools are
 * `concurrent`. `sequential`: none. `parallel`: all.
 */
export type ToolExecutionMode = "auto" | "sequential" | "parallel";

/** A failure after which another model may be asked: its kind, or its HTTP status. */
export type FallbackReason = FailureKind | number;

/** A list of failures, or a function that is called with each that nothing was shown before. */
export type FallbackRule =
  | readonly FallbackReason[]
  | ((failure: Failure, model: Model) => boolean);

/** What a response may be silent about: its next block, or the rest of one that has begun. */
export const CONTENT_PHASES = ["response", "thinking", "text", "call"] as const;
export type ContentPhase = (typeof CONTENT_PHASES)[number];

/**
 * How long a response may be silent before it fails. 0 disables a limit. The limits of the
 * connection are for the provider to keep; a failure of theirs is retried as any other.
 */
export interface WatchdogOptions extends ConnectionWatchdog {
  /**
   * Without content, whatever else the connection carries; one number, or one for each phase.
   * Default 900,000; no limit until a model on this machine begins. A response that had begun
   * fails as `stalled` and is not retried: its service may still be at work.
   */
  contentMs?: number | Partial<Record<ContentPhase, number>>;
}

/** What a run begins with: the transcript so far, and what goes with every request. */
export interface AgentContext {
  systemPrompt?: string;
  messages: readonly AgentMessage[];
  tools?: readonly AgentTool[];
  /** What an earlier run made of a part of `messages`: see the event of this name. */
  compaction?: Compaction;
  /** How the service of the model counts tokens, as earlier runs learned. */
  calibration?: TokenCalibration;
}

/** What `prepareTurn` may change from here on. */
export interface TurnChanges {
  model?: Model;
  tools?: readonly AgentTool[];
  thinkingLevel?: ThinkingLevel;
  systemPrompt?: string;
}

/** A turn that has just ended, for `prepareTurn` and `shouldStopAfterTurn`. */
export interface TurnSummary {
  message: AssistantMessage;
  toolResults: readonly ToolResultMessage[];
  /** The whole transcript; valid for the call. */
  messages: readonly AgentMessage[];
  turns: number;
  usage: Usage;
}

type MaybePromise<T> = T | Promise<T>;

/**
 * How to run. Every callback may be asynchronous. If it throws, or does not settle within
 * `hookTimeoutMs`, the run ends with an error message (R5).
 */
export interface AgentLoopConfig extends Omit<StreamOptions, "signal"> {
  model: Model;
  /**
   * Asked in this order when the model in use has failed as `fallbackOn` says, and has shown
   * nothing: at once where it is overloaded, out of quota or rejects the key, else after its
   * retries, of which there are fewer while another model can be asked (`RetryOptions`). The
   * choice holds for the rest of the run, or until `prepareTurn` sets a model. `apiKey` is not
   * given to another provider.
   */
  fallbackModels?: readonly Model[];
  /**
   * After which failures the next of `fallbackModels` is asked: kinds and HTTP statuses, or a
   * function. Default: `DEFAULT_FALLBACK_ON`, every failure of the service, its network or its
   * key. Not in it: `refused`, `bad_request` except for 404, and `overflow`.
   */
  fallbackOn?: FallbackRule;
  /** The client that calls the model. The `streamFn` argument of the entry points takes precedence. */
  protocol?: ProtocolClient;
  /** If given, replaces `context.tools`. */
  tools?: readonly AgentTool[];

  /** Messages as a model reads them. Default `defaultConvertToLlm`, which leaves custom roles out. */
  convertToLlm?: (messages: readonly AgentMessage[]) => MaybePromise<readonly Message[]>;
  /** Called before `convertToLlm` for each request; what it gives is sent, not kept. */
  transformContext?: (
    messages: readonly AgentMessage[],
    signal: AbortSignal,
  ) => MaybePromise<readonly AgentMessage[]>;
  /** Called for each request. An error with `failure.kind` `"auth"` says that there is no key. */
  getApiKey?: (provider: string) => MaybePromise<string | undefined>;

  steering?: SteeringPolicy;
  getSteeringMessages?: () => MaybePromise<readonly AgentMessage[] | undefined>;
  getFollowUpMessages?: () => MaybePromise<readonly AgentMessage[] | undefined>;
  /** Whether a poll would give something; lets a run that is at a limit say so. */
  hasQueuedMessages?: () => boolean;
  /** Returns messages that were polled and could not be delivered to the front of their queue. */
  requeue?: (queue: QueueName, messages: AgentMessage[]) => void;
  /** Calls `wake` when a steering message arrives; needed by `"redirect"`. */
  onSteering?: (wake: () => void) => () => void;
  skipInitialSteeringPoll?: boolean;

  prepareTurn?: (turn: TurnSummary) => MaybePromise<TurnChanges | undefined | void>;
  shouldStopAfterTurn?: (turn: TurnSummary) => MaybePromise<boolean>;
  /**
   * Whether the model is asked again, in a new turn, after a response that failed. Default: it is
   * not, and the run ends. Not called when a limit is reached.
   */
  continueAfterError?: (turn: TurnSummary) => MaybePromise<boolean>;

  /**
   * Whether `toolChoice` forces a call in every turn. Default false: `required` and a tool's name
   * hold for the first turn of a run, so that the model can answer in the next.
   */
  toolChoiceInEveryTurn?: boolean;
  toolExecution?: ToolExecutionMode;
  /** Default 10. */
  maxToolConcurrency?: number;
  /** Default 600,000. */
  toolTimeoutMs?: number;
  /** Default 200. */
  abortGraceMs?: number;
  middleware?: readonly Middleware[];
  /** Default 86,400,000, a day: for a call with its middleware, as long as a person may take. */
  middlewareTimeoutMs?: number;
  onLateResult?: (call: ToolCall, result: AgentToolResult) => void;

  /** Compacts the context when it grows too large. Off unless given. */
  context?: ContextConfig;
  limits?: Limits;
  /** The call of another agent's tool that the run works for. */
  caller?: Caller;
  /** Another name of `limits.maxTurns`. */
  maxIterations?: number;
  retry?: RetryOptions;
  watchdog?: WatchdogOptions;
  /** Default 120,000: for a callback that does not settle. */
  hookTimeoutMs?: number;
  /** Default `hookTimeoutMs`: for a sink that does not settle, such as a store that is away. */
  sinkTimeoutMs?: number;

  /** Answers to calls that a suspended run left pending, by call id. */
  decisions?: Readonly<Record<string, Decision>>;
  /** What a journal has of a call without a result in the transcript. */
  unfinished?: (toolCallId: string) => UnfinishedCall | undefined;

  /**
   * The run that a crash cut off, and that this one goes on with: what it had done counts into
   * limits, `turns` and `usage`, and its last turn is brought to its end first.
   */
  interrupted?: InterruptedRun;

  clock?: Clock;
  /** Ids for calls whose own id was used before. */
  generateId?: () => string;
  random?: () => number;
}

export type { StreamFn };
