import type { Agent, AgentEndEvent, AgentEvent } from "@gyre/agent";
import type { AnySchema, ImageContent, Model, ThinkingLevel } from "@gyre/ai";
import type { Session } from "@gyre/sessions";
import type { ApprovalAnswer, ApprovalRequest, PermissionMode, Toolset } from "@gyre/tools";
import type { Settings } from "./settings.ts";
import type { Environment } from "./terminal.ts";

/** Who decides on what would be asked about. */
export type Approvals =
  /** Nobody: it is denied, and the model is told. */
  | "deny"
  /** Somebody, later: the run ends suspended, and goes on with their decision. */
  | "suspend"
  | ((request: ApprovalRequest) => Promise<ApprovalAnswer>);

export interface HarnessOptions {
  settings: Settings;
  /** The folder to work in, absolute. */
  cwd: string;
  env: Environment;
  approvals: Approvals;
  /** Where all is written down. Open, and closed by its owner after the harness. */
  session?: Session;
  /** A file for all that is sent and received. */
  verbose?: string;
  /** Told of what a person should know and nothing else says. */
  warn: (text: string) => void;
  /** For tests. */
  fetch?: typeof fetch;
}

export interface PromptRequest {
  text: string;
  images?: readonly ImageContent[];
  /** The answer has to fit this. */
  output?: AnySchema;
}

/** How a prompt ended. */
export interface Outcome {
  end: AgentEndEvent;
  /** The typed answer, where one was asked for and came. */
  output?: unknown;
  /** Why there is none. */
  outputError?: string;
}

/** An agent with a folder, tools, permissions and a session: what print, RPC and ACP have in common. */
export interface Harness {
  readonly agent: Agent;
  readonly toolset: Toolset;
  readonly session: Session | undefined;
  readonly model: Model;
  readonly mode: PermissionMode;
  /** What the calls that were denied would have done, in order. */
  readonly denied: readonly { toolCallId: string; tool: string; reason: string }[];
  /** Every event, after it was written down. */
  subscribe(listener: (event: AgentEvent) => void | Promise<void>): () => void;
  /**
   * Runs on a prompt to its end. A response that broke off after something of it was shown
   * is taken up again, at most `MAX_RESUMES` times.
   */
  prompt(request: PromptRequest): Promise<Outcome>;
  /** Models by name; throws what to tell the user. */
  setModel(name: string): Promise<Model>;
  setThinking(level: ThinkingLevel): Promise<void>;
  setMode(mode: PermissionMode): Promise<void>;
  /** Ends a run, jobs and tools. */
  close(): Promise<void>;
}
