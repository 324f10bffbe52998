import type { Message, ToolCall, UserMessage } from "@gyre/ai";
import type { ToolEffects } from "./presentation.ts";
import type { AgentMessage } from "./types.ts";

/**
 * What stays known of turns that a compaction left out, word for word and without a model, from
 * one compaction to the next. The newest are last.
 */
export interface CompactionFacts {
  requests: readonly string[];
  changed: readonly string[];
  decisions: readonly string[];
  commands: readonly string[];
  /** What the model said it does, as far as no summary covers it. */
  steps: readonly string[];
}

/**
 * What a run sends in place of parts of the transcript. The transcript itself stays whole.
 * Plain data.
 */
export interface Compaction {
  /** `messages[from]` up to, not including, `messages[to]` is what `message` stands for. */
  from: number;
  to: number;
  /** Absent: nothing is left out. */
  message?: UserMessage;
  /** What is sent in place of a result's text, by call id. */
  shortened?: Readonly<Record<string, string>>;
  /** What is known of all that was left out so far. */
  facts?: CompactionFacts;
}

/**
 * When a run compacts its context, and how. The run compacts before a request that would be
 * larger than the trigger, and once after a request that the service refused as too large (R24).
 * Sizes are in tokens, estimated.
 */
export interface ContextConfig {
  /** Larger contexts are compacted. Default 160,000; never more than 80 % of the model's window. */
  triggerTokens?: number;
  /** The size that a compaction aims at. Default: half of the trigger. */
  targetTokens?: number;
  /** Turns at the end that are kept as they are. Default 2. */
  keepTurns?: number;
  /**
   * The run shortens a tool's result that is longer, before any listener sees it. Default:
   * 12,000, or half of the trigger if that is less.
   */
  maxResultTokens?: number;
  /**
   * Makes a short text of a long one; a model may do that. The run asks for a summary of old
   * turns before it needs one, and for one of each result that is too long. Without it, or when
   * it throws or takes too long, a list of facts stands for the turns, and the result is
   * truncated. `focus` says what matters: of turns, what the caller of `Agent.compact` wants kept
   * above all; of a result, the call that it answers. The beginning and the end of a result and
   * its lines that report errors stay beside its summary as they are. Results of a tool that pages
   * (`presentation.paged`) are truncated, never summarized.
   */
  summarize?: (
    text: string,
    signal: AbortSignal,
    what: "turns" | "result",
    focus?: string,
  ) => string | Promise<string>;
  /** How long a run waits for a summary once it needs one. Default 30,000. */
  summaryWaitMs?: number;
  /**
   * Stores the whole text of a result of which only a short form is sent. It returns how the
   * model can read the text back (a call of a tool, say), which the short form then mentions.
   */
  storeResult?: (key: string, text: string) => string | void | Promise<string | void>;
  /** A text that every compaction includes as it is at that moment: a scratch-pad. */
  pinned?: () => string | undefined | Promise<string | undefined>;
  /**
   * Called before a compaction. `false` postpones it to the next request, as long as the
   * model's window has room. If it throws, the run ends with an error message (R5).
   * `manual`: `Agent.compact` asks, and rejects on `false`.
   */
  beforeCompaction?: (
    signal: AbortSignal,
    trigger: "auto" | "manual",
  ) => boolean | void | Promise<boolean | void>;
  /**
   * What the model reads of one message of the application's own, as `convertToLlm` makes it: its
   * size counts, and a summary covers it. Without it such messages count nothing.
   */
  convertMessage?: (message: AgentMessage) => Message | undefined;
  /** What a call did. Default: what its tool's `presentation` says. */
  classifyCall?: (call: ToolCall) => ToolEffects;
}
