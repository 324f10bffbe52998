import {
  type GenerationOptions,
  type ImageContent,
  type Model,
  type ModelName,
  type ProtocolClient,
  type StreamFn,
  THINKING_LEVELS,
  type ThinkingLevel,
  type UserContent,
} from "@gyre/ai";
import { checkShape } from "#checks";
import type { DecisionOf } from "../contract/by-tool.ts";
import type { Compaction } from "../contract/compaction.ts";
import type {
  AgentEvent,
  AgentLoopConfig,
  AgentSink,
  AgentTool,
  InterruptedRun,
  Limits,
  PendingCall,
  QueueMode,
} from "../contract/types.ts";
import type { MessageInput } from "../transcript/input.ts";
import type { Handoff } from "./handoff.ts";
import type { QueueChange, QueuedMessages } from "./queue.ts";
import type { EventView } from "./state.ts";

/** The run no longer waits for a listener that has not settled by then. */
export const DEFAULT_LISTENER_TIMEOUT_MS = 30_000;

/**
 * What an agent is at one moment. It does not change: `agent.state` is another object once
 * something has changed, and the same one until then. Of its parts only `streamMessage` grows in
 * place; `streamVersion` changes with it.
 */
export interface AgentState<Pending = PendingCall> extends Omit<EventView, "pending"> {
  /** Calls that a suspended run left for a person to decide. */
  readonly pending: readonly Pending[];
  readonly systemPrompt: string;
  /** Nothing until a model that was given by its name has been looked up. */
  readonly model: Model | undefined;
  readonly thinkingLevel: ThinkingLevel;
  readonly tools: readonly AgentTool[];
}

/** The turns of a run of an `Agent` that has no other limit (R23). */
export const DEFAULT_MAX_TURNS = 100;

type OwnedByAgent =
  | "model"
  | "fallbackModels"
  | "tools"
  | "thinkingLevel"
  | "getSteeringMessages"
  | "getFollowUpMessages"
  | "hasQueuedMessages"
  | "requeue"
  | "onSteering"
  | "skipInitialSteeringPoll"
  | "continueAfterError"
  | "decisions"
  | "interrupted";

/**
 * How an agent runs: the configuration of the loop, except for the parts that the agent manages,
 * and what it starts with.
 */
export interface AgentOptions<Tool extends AgentTool = AgentTool> extends Omit<
  AgentLoopConfig,
  OwnedByAgent
> {
  /** A model, or its name, such as "anthropic/claude-sonnet-4-5", which is looked up under Node. */
  model?: Model | ModelName;
  /** Models or their names; see `fallbackModels` of `AgentLoopConfig`. */
  fallbackModels?: readonly (Model | ModelName)[];
  /** The system prompt. */
  instructions?: string;
  tools?: readonly Tool[];
  /** What others call it where conversations are transferred. Default "main". */
  name?: string;
  /** Agents that may take the conversation over, and transfer it on. */
  handoffs?: readonly Handoff[];
  /** The transcript so far. */
  messages?: readonly MessageInput[];
  /** Default `off`. */
  thinkingLevel?: ThinkingLevel;
  /** Calls of the transcript that wait for a person. */
  pending?: readonly PendingCall[];
  /** The run of the transcript that a crash cut off: `continue()` goes on with it, `prompt()` does not. */
  interrupted?: InterruptedRun;
  /** What an earlier agent sent in place of a part of the messages. */
  compaction?: Compaction;
  /** Messages that wait in the queues already. */
  queued?: QueuedMessages;
  /** Default under Node: a client of every service, with keys and addresses from this machine. */
  protocol?: ProtocolClient;
  streamFn?: StreamFn;
  /** `maxTurns` is 100 unless given; `Infinity` is no limit. */
  limits?: Limits;
  steeringMode?: QueueMode;
  followUpMode?: QueueMode;
  /** Receives each event before state and listeners do, and is awaited: a journal, for example (R25). */
  sink?: AgentSink;
  /**
   * How many responses in a row may break off after content was shown, and are followed by another
   * turn of the same run (R22). What had arrived is kept, its calls are not run. Default 0: the
   * run ends with the error.
   */
  maxContinuations?: number;
  /** Called at once when the application has changed a queue, so that a journal can keep it. */
  onQueueChange?: (change: QueueChange) => void;
  /** Default 30,000. */
  listenerTimeoutMs?: number;
  /** Receives errors that do not end the run, such as one of a listener. Default: a process warning. */
  onError?: (error: unknown, where: string) => void;
}

/**
 * Called with each event. The agent reports what a listener throws and goes on; it waits for a
 * promise up to `listenerTimeoutMs`.
 */
export type AgentListener<Event = AgentEvent> = (event: Event) => void | Promise<void>;

/**
 * What one run has of its own. `tools` replace those of the agent, `middleware` comes inside of
 * the agent's, and of `limits` and `headers` each entry replaces the agent's of that name.
 */
export type RunOverrides = Pick<
  AgentOptions,
  | keyof GenerationOptions
  | "temperature"
  | "maxTokens"
  | "headers"
  | "limits"
  | "toolChoice"
  | "middleware"
  | "tools"
  | "caller"
>;

/** Options of a prompt. */
export interface PromptOptions extends RunOverrides {
  images?: readonly ImageContent[];
  /** Further content after the text, such as files with their `source`. */
  attachments?: readonly UserContent[];
  /** What to do with the prompt while a run goes on, instead of throwing. */
  whileRunning?: "steer" | "followUp";
  /**
   * Aborts the run that the prompt starts, as `abort()` does: it ends soon and keeps what arrived
   * (R21). A signal that has fired already ends the run before the model is asked. Not with
   * `whileRunning`: a queued prompt has no run of its own.
   */
  signal?: AbortSignal;
}

export interface ContinueOptions<Tool extends AgentTool = AgentTool> extends RunOverrides {
  /** A person's answers to pending calls, by call id. The rest stays pending. */
  decisions?: Readonly<Record<string, DecisionOf<Tool>>>;
  /** Aborts the run, as `abort()` does: it ends soon and keeps what arrived (R21). */
  signal?: AbortSignal;
}

/** Options of a prompt that is never queued. */
export type RunOptions = Omit<PromptOptions, "whileRunning">;

export interface CompactOptions {
  /** What the summary should keep above all. */
  keep?: string;
  signal?: AbortSignal;
}

/** Throws on options that cannot be meant, and says what to write instead. */
export function checkOptions(options: AgentOptions): AgentOptions {
  checkShape("new Agent", options);
  const { protocol, thinkingLevel } = options;
  if (protocol && typeof protocol.stream !== "function") {
    const what = typeof protocol === "function" ? "is a function" : "has no method `stream`";
    throw new TypeError(`The \`protocol\` ${what}: give a client, such as createModelClient().`);
  }
  if (thinkingLevel) checkLevel(thinkingLevel);
  return options;
}

/** Throws on a level that there is not. */
export function checkLevel(level: ThinkingLevel): ThinkingLevel {
  if (THINKING_LEVELS.includes(level)) return level;
  const levels = THINKING_LEVELS.join(", ").replace(/, (\w+)$/, " or $1");
  throw new TypeError(`There is no thinking level ${JSON.stringify(level)}: write ${levels}.`);
}
