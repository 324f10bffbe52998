import type { Agent, AgentEndEvent, AgentState } from "@gyre/agent";
import type { AnySchema, ImageContent, Model, ThinkingLevel, Usage, UserContent } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { PermissionMode, Todo } from "@gyre/tools";
import type { NoticedJob } from "./job-notice.ts";
import type { ConversationQueue } from "./queue.ts";
import type { UserCommandMessage } from "./user-command.ts";

export interface PromptRequest {
  text: string;
  images?: readonly ImageContent[];
  /** Commands that the user ran before it: messages of their own, before the prompt. */
  userCommands?: readonly UserCommandMessage[];
  /** Further content after the text: files, say, with their `source`. */
  attachments?: readonly UserContent[];
  /** The answer has to fit this. */
  output?: AnySchema;
  /** Cancels the prompt before the agent has started with it; from then on `abort()` does that. */
  signal?: AbortSignal;
}

/** How a prompt ended. */
export interface Outcome {
  end: AgentEndEvent;
  /** Of all runs that the prompt took. */
  turns: number;
  usage: Usage;
  /** The same by what it was for. */
  spending?: Readonly<Record<string, Usage>>;
  /** The typed answer, where one was asked for and came. */
  output?: unknown;
  /** Why there is none. */
  outputError?: string;
  /** Why the session could not be written to, which ended the run. */
  sessionError?: string;
}

/** What a conversation needs of an agent. */
export interface ConversedAgent extends Pick<
  Agent,
  "subscribe" | "hasQueuedMessages" | "abort" | "waitForIdle"
> {
  readonly state: Pick<AgentState, "messages" | "thinkingLevel" | "pendingToolCalls">;
}

/** What a conversation needs of the tools of an agent. */
export interface ConversedTools {
  readonly env: { readonly workspace: { readonly root: string }; readonly spoolFolder: string };
  readonly jobs: ConversedJobs;
  readonly todos: { readonly items: readonly Todo[] };
}

/** The background jobs of an agent. */
export interface ConversedJobs {
  list(): readonly NoticedJob[];
  /** Calls the listener when one has started or ended. `isNews`: it ended without anybody asking for that. */
  onChange(listener: (change: { job: NoticedJob; isNews: boolean }) => void): () => void;
  /** Whether commands run that can go on in the background. */
  readonly hasMovable: boolean;
  /** Has them do so. Throws where that is not possible. */
  moveAll(): void;
}

/** Runs of an agent that others use as well: they begin without this conversation. */
export interface SharedRuns {
  /** One goes on, or waits for an answer. */
  readonly isRunning: boolean;
  /** Settles with its end, also where another client began it. */
  follow(): Promise<Outcome>;
}

/** What a conversation needs of the agent, its folder and its session. */
export interface ConversationAgent {
  readonly agent: ConversedAgent;
  readonly toolset: ConversedTools;
  readonly queue: ConversationQueue;
  /** What is written to; undefined before the first prompt where that makes it. */
  readonly session: Session | undefined;
  /** Whether the conversation stops in the middle: a question or a result without an answer. */
  readonly isCutOff: boolean;
  /** Given: others use the agent as well, and this conversation begins nothing by itself. */
  readonly shared?: SharedRuns;
  /** Why the user cannot run commands of their own in its folder. Absent: they can. */
  readonly refusesCommands?: string;
  /** Where pictures are that a prompt names. Default: the folder of the agent. */
  readonly pictureFolder?: string;
  /**
   * Called when a view has shown the messages that there are: events come from then on. Absent: they come at once.
   */
  beginEvents?(): void;
  /** Runs on a prompt to its end. Rejects where a hook does not let it through. */
  prompt(request: PromptRequest): Promise<Outcome>;
  /** Continues a conversation that is cut off, to its end. */
  resume(output?: AnySchema): Promise<Outcome>;
  close(): Promise<void>;
}

/** The connection to an agent that runs elsewhere. */
export type ConnectionFact =
  | { type: "connected" }
  /** It is tried again then, in milliseconds of the clock; absent: right now. */
  | { type: "lost"; retryAt?: number; reason: string }
  /** It is not tried again. */
  | { type: "closed"; reason: string };

/** What is known of an agent that runs elsewhere, in place of what can be looked up here. */
export interface RemoteFacts {
  readonly connection: ConnectionFact;
  /** Of the repository. */
  readonly branch: string | undefined;
}

/** What a view shows of an agent and lets its user change, wherever the agent runs. */
export interface ShownAgent extends ConversationAgent {
  readonly model: Pick<Model, "provider" | "id" | "name">;
  /** What the model does where nothing is set. */
  readonly usualThinking: ThinkingLevel;
  readonly mode: PermissionMode;
  /** The modes that it may have. Absent: that is not known here. */
  readonly modes?: readonly PermissionMode[] | undefined;
  /** The tokens at which the context is compacted, with the model in use. */
  readonly compactAt: number;
  readonly spending: { readonly session: Usage };
  /** Rules can hold for the project and everywhere. */
  readonly keepsRules?: boolean;
  /** Given: it runs elsewhere. */
  readonly remote?: RemoteFacts;
  /** Models by name; throws an error with a message for the user. */
  setModel(name: string): Promise<Pick<Model, "provider" | "id" | "name">>;
  setThinking(level: ThinkingLevel): Promise<void>;
  setMode(mode: PermissionMode): Promise<void>;
}
