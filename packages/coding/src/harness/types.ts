import type { AgentTool, AgentToolResult, Decision, Limits } from "@gyre/agent";
import type { Model, ThinkingLevel, Usage } from "@gyre/ai";
import type { Fetch } from "@gyre/ai/providers";
import type { Session, SessionContext } from "@gyre/sessions";
import type { ApprovalAnswer, ApprovalRequest, GyrePlugin, PermissionMode } from "@gyre/tools";
import type { Mcp, McpServerEntry } from "@gyre/tools/mcp";
import type { CommandRegistry } from "../extensions/command-registry.ts";
import type { Extensions } from "../extensions/extensions.ts";
import type { FileHistory } from "../file-history/recorder.ts";
import type { Guidance } from "../guidance/guidance.ts";
import type { Skill } from "../guidance/skills.ts";
import type { UserCall } from "./call-tool.ts";
import type { Ceilings } from "./ceilings.ts";
import type { DeniedCall } from "./denied-call.ts";
import type { OffloadedResults } from "./offloaded-results.ts";
import type { GivenRule, RuleBook } from "../permissions/rule-book.ts";
import type { Models } from "../models/models.ts";
import type { Settings } from "../settings/settings.ts";
import type { TrustedRun } from "../settings/trusted-run.ts";
import type { ReviewPlan } from "../conversation/plan.ts";
import type { Purpose, Spending } from "./spending.ts";
import type { ConversationAgent } from "../conversation/types.ts";
import type { Environment } from "../core/environment.ts";

export type { DeniedCall } from "./denied-call.ts";

/** What becomes of calls that need an approval. */
export type Approvals =
  /** They are denied, and the model gets the reason. */
  | "deny"
  /** The run ends suspended, and continues with a later decision. */
  | "suspend"
  | ((request: ApprovalRequest) => Promise<ApprovalAnswer>);

export interface HarnessOptions {
  settings: Settings;
  /** The folder to work in, absolute. */
  cwd: string;
  env: Environment;
  approvals: Approvals;
  /** Asks a person about a plan. Without it the plan is the answer of the model. */
  reviewPlan?: ReviewPlan;
  /** Where all is written down. Open, and closed by its owner after the harness. */
  session?: Session;
  /** Makes one when there is something to write down; the harness closes it. */
  newSession?: () => Promise<Session | undefined>;
  /**
   * A worker writes what the agent does to the session, and the session is its own: the harness
   * writes settings, notes and payments alone.
   */
  isJournaled?: boolean;
  /** Settings that were asked for just now: they go before those that the session had. */
  explicit?: ReadonlySet<keyof Settings>;
  /** The session keeps what it was given, its mode too, whatever `explicit` says. */
  keepsRights?: boolean;
  /** The most that the session may have. */
  ceilings?: Ceilings;
  /** Names of the program's own slash commands, which plugins may not have. */
  reservedCommands?: readonly string[];
  /** Called when a plugin is loaded: see `Io`. */
  onForeignCode?: (() => void) | undefined;
  /** MCP servers whose tools the agent may find. */
  mcpServers?: readonly McpServerEntry[];
  /** What a trusted project runs. */
  trusted?: TrustedRun;
  /** Whether what calls do to files is recorded, for a way back. Needs a session. Default: false. */
  fileHistory?: boolean;
  /** Whether `approvals` can show what a command did in a layer: it runs there before it is asked about. Default: false. */
  rehearse?: boolean;
  /** Whether the model gets date, system, git, mode and sandbox with the first prompt. Default: false. */
  facts?: boolean;
  /** The folder with the pages about the program, for the system prompt. */
  docs?: string;
  /** The key of the model's service, in place of the one that is stored. */
  apiKey?: string;
  /** A file for all that is sent and received. */
  verbose?: string;
  /** Called with what a person should know and nothing else reports. */
  warn: (text: string) => void;
  /** The models there are, in place of those of the settings: a scripted one, say. */
  models?: Models;
  /** Changes the models of the settings: what a program gives takes precedence. */
  adaptModels?: (models: Models) => Models;
  /** Tools of the program itself, which the agent has whatever tools are named. */
  ownTools?: readonly AgentTool[];
  /** Plugins of the program itself. */
  ownPlugins?: readonly GyrePlugin[];
  /** Where rules of answers are kept that hold for the project or everywhere. Absent: nowhere. */
  ruleFile?: string;
  /** Further limits of a prompt. Those of the settings hold where these say nothing. */
  limits?: Limits;
  /** What a setting is called where it was asked for just now. Default: as an option, `--name`. */
  nameOption?: (setting: "allow" | "ask" | "deny") => string;
  /** For tests. */
  fetch?: Fetch;
}

/** An agent with a folder, tools, permissions and a session: what all modes have in common. */
export interface Harness extends ConversationAgent {
  readonly model: Model;
  readonly mode: PermissionMode;
  /** The tokens at which the context is compacted, with the model in use. */
  readonly compactAt: number;
  /** What the calls that were denied would have done, in order. */
  readonly denied: readonly DeniedCall[];
  /** What became of files, where that is recorded. */
  readonly fileHistory?: FileHistory | undefined;
  /** All that was paid for the session. */
  readonly spending: Spending;
  /** By what it was for, all that was paid since the end of the last prompt, or since the last call. */
  takeSpending(): Partial<Record<Purpose, Usage>>;
  /** Commands of plugins. */
  readonly commands?: CommandRegistry | undefined;
  /** Skills that the agent can read. */
  readonly skills?: readonly Skill[];
  /** The way to MCP servers, where there are any. */
  readonly mcp?: Mcp | undefined;
  /** Rules that a person gave with an answer. */
  readonly givenRules?: readonly GivenRule[];
  /** Rules can hold for the project and everywhere. */
  readonly keepsRules?: boolean;
  /** Takes back a rule that a person gave. Whether there was one. */
  revokeRule?(rule: string): Promise<boolean>;
  /** Has the session ready; the first prompt does that too. */
  start(): Promise<void>;
  /** Saves a person's answers to pending calls, before they are acted on. */
  decide(decisions: Readonly<Record<string, Decision>>): Promise<void>;
  /**
   * Asks the model something beside the conversation, which knows nothing of it. What it uses
   * is counted with the next prompt. Rejects where there is no whole answer, and on `abort()`.
   */
  ask(prompt: string, signal: AbortSignal): Promise<string>;
  /** Runs a tool for the user, through permissions and hooks. Nothing of it is in the conversation. */
  callTool(call: UserCall): Promise<AgentToolResult>;
  /** Models by name; throws an error with a message for the user. */
  setModel(name: string): Promise<Model>;
  setThinking(level: ThinkingLevel): Promise<void>;
  setMode(mode: PermissionMode): Promise<void>;
  /** Of the tools that were opened, those that the model has from its next request on. */
  setTools(names: readonly string[]): Promise<void>;
}

/** The mode that holds. */
export interface ModeState {
  now: PermissionMode;
  /** Nothing was said of it: it is `auto` as long as a sandbox is not known to be missing. */
  isAssumed: boolean;
}

/** What a harness is put together from. */
export interface Parts {
  options: HarnessOptions;
  settings: Settings;
  models: Models;
  model: Model;
  context: SessionContext | undefined;
  /** Whether this installation has written the settings of the session. */
  isOwn: boolean;
  guidance: Guidance;
  extensions: Extensions | undefined;
  denied: DeniedCall[];
  mode: ModeState;
  results: OffloadedResults;
  spending: Spending;
  ruleBook: RuleBook;
}
