import type {
  AgentEnd,
  AgentListener,
  AgentRun,
  AgentState,
  CompactOptions,
  ContinueOptions,
  MessageInput,
  RunOptions,
} from "@gyre/agent";
import type { AnySchema, InferArguments, Model } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { PermissionMode } from "@gyre/tools";
import type { FileChange, LeftOut } from "./file-history/lines/line.ts";
import type { Skill } from "./guidance/skills.ts";
import type { DeniedCall } from "./harness/denied-call.ts";

/** Options of a prompt. */
export type CodingPromptOptions = Pick<RunOptions, "images" | "attachments" | "signal">;

/** Options of `continue()`. */
export type CodingContinueOptions = Pick<ContinueOptions, "decisions" | "signal">;

/** What a rewind takes back. */
export interface RewindOptions {
  /** How many messages of the user are taken back. Default 1: the last. */
  prompts?: number;
  /** Default: both. */
  only?: "files" | "conversation";
  /** Whether files that were changed from outside meanwhile are taken back too. Default: false. */
  replaceConflicts?: boolean;
}

/** What a rewind has done. */
export interface Rewound {
  /** The text of the oldest message that was taken back, to be edited. */
  prompt: string;
  /** Files that are as they were before it. */
  files: readonly FileChange[];
  /** Files that are left alone because of a conflict, with the reason. */
  left: readonly LeftOut[];
  failed: readonly LeftOut[];
}

/**
 * The coding agent; see `createCodingAgent`. Its methods and its events are those of `Agent`:
 * `prompt`, `run`, `continue`, `steer`, `followUp`, `abort`, `subscribe`, `state`.
 */
export interface CodingAgent {
  /** Messages, model, tools, usage and pending calls, as of `Agent`. */
  readonly state: AgentState;
  /** Whether it works on something, hooks included. */
  readonly isRunning: boolean;
  /** What is written to; undefined before the first prompt of a new session, or where none is written. */
  readonly session: Session | undefined;
  readonly model: Model;
  /** What it does without asking. */
  readonly mode: PermissionMode;
  /** The calls that were denied, in order, each with a rule that would have allowed it. */
  readonly denied: readonly DeniedCall[];
  /** The skills that it can read. */
  readonly skills: readonly Skill[];
  /**
   * Works on a prompt to its end, and answers how that was: `end.text` is the answer. Hooks for
   * the end may have it go on; `turns` and `usage` are those of all of it. Rejects while it works
   * on something else, and where a hook does not let the prompt through.
   */
  prompt(text: string, options?: CodingPromptOptions): Promise<AgentEnd>;
  prompt<const S extends AnySchema>(
    text: string,
    options: CodingPromptOptions & { output: S },
  ): Promise<AgentEnd<InferArguments<S>>>;
  /** `prompt()` as an iterable of events, with a `textStream`. */
  run(text: string, options?: CodingPromptOptions): AgentRun;
  run<const S extends AnySchema>(
    text: string,
    options: CodingPromptOptions & { output: S },
  ): AgentRun<InferArguments<S>>;
  /**
   * Goes on from the transcript as it is: after a suspension with a person's decisions, after an
   * error or a crash with what was not finished.
   */
  continue(options?: CodingContinueOptions): Promise<AgentEnd>;
  continue<const S extends AnySchema>(
    options: CodingContinueOptions & { output: S },
  ): Promise<AgentEnd<InferArguments<S>>>;
  /** Queues a message that interrupts the run. Returns its id in the queue. */
  steer(message: string | MessageInput): string;
  /** Queues a message for when the agent would stop. Returns its id in the queue. */
  followUp(message: string | MessageInput): string;
  /** Ends what it works on, hooks included: it keeps what arrived. */
  abort(): void;
  /** Calls `listener` with each event. Returns a function that unsubscribes. */
  subscribe(listener: AgentListener): () => void;
  /** Settles when it works on nothing. */
  waitForIdle(): Promise<void>;
  /** Compacts the context now; see `Agent`. */
  compact(options?: CompactOptions): Promise<{ before: number; after: number } | undefined>;
  /** Changes the model, by its name, from the next turn on. */
  setModel(name: string): Promise<Model>;
  /** Changes what it does without asking, from the next call on. */
  setMode(mode: PermissionMode): Promise<void>;
  /**
   * Takes back the last messages of the user with all that was done for them: files are as they
   * were, and the conversation goes on from there. What it takes back stays in the session, on
   * another branch. Needs a session, and for files `fileHistory`.
   */
  rewind(options?: RewindOptions): Promise<Rewound>;
  /** Ends what runs, and releases folder, session, MCP servers and processes. May be called twice. */
  close(): Promise<void>;
  /** `await using agent = await createCodingAgent()` closes it. */
  [Symbol.asyncDispose](): Promise<void>;
}
