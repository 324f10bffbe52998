import type { Agent, AgentTool, AgentToolResult, Decision, Limits } from "@gyre/agent";
import type { Model, Usage } from "@gyre/ai";
import type { Fetch } from "@gyre/ai/providers";
import type { Session, SessionContext } from "@gyre/sessions";
import type {
  ApprovalAnswer,
  ApprovalRequest,
  GyrePlugin,
  PermissionMode,
  Toolset,
} from "@gyre/tools";
import type { AskQuestion, Mcp, McpServerEntry } from "@gyre/mcp";
import type { CommandRegistry } from "../extensions/command-registry.ts";
import type { Extensions } from "../extensions/extensions.ts";
import type { FileHistory } from "../file-history/recorder.ts";
import type { Guidance } from "../guidance/guidance.ts";
import type { Skill } from "../guidance/skills.ts";
import type { UserCall } from "./aside/call-tool.ts";
import type { Ceilings } from "./ceilings.ts";
import type { DeniedCall } from "./denied-call.ts";
import type { SessionFiles } from "./session/session-files.ts";
import type { OffloadedResults } from "./session/offloaded-results.ts";
import type { GivenRule, RuleBook } from "../permissions/rule-book.ts";
import type { Models } from "../models/models.ts";
import type { Policy } from "../policy/policy.ts";
import type { Settings } from "../settings/settings.ts";
import type { TrustedRun } from "../settings/trusted-run.ts";
import type { ReviewPlan } from "../conversation/plan.ts";
import type { Purpose, Spending } from "./session/spending.ts";
import type { ShownAgent } from "../conversation/types.ts";
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
  /** Whether that person is there; asked before each prompt. Default: always. */
  canReviewPlan?: () => boolean;
  /** Has a person answer MCP servers that ask in the middle of a call. Default: they are declined. */
  answerServer?: AskQuestion;
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
  /** What the administrator of the machine allows at most. */
  policy?: Policy | undefined;
  /** Names of the program's own slash commands, which plugins may not have. */
  reservedCommands?: readonly string[];
  /** Called when a plugin is loaded: see `Io`. */
  onForeignCode?: (() => void) | undefined;
  /** MCP servers whose tools the agent may find. */
  mcpServers?: readonly McpServerEntry[];
  /** What a trusted project runs. */
  trusted?: TrustedRun;
  /**
   * Whether what calls do to files is recorded, for a way back. Needs a session. `"at once"`: before their results are written
   * down; otherwise the look after a command is made while the model goes on. Default: false.
   */
  fileHistory?: boolean | "at once";
  /** Whether `approvals` can show what a command did in a layer: it runs there before it is asked about. Default: false. */
  rehearse?: boolean;
  /** The page that leads to those about the program, for the system prompt. All in its folder may be read. */
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
  /** The folder whose rules hold, where `cwd` is a copy of it. Default: `cwd`. */
  project?: string;
  /** Further limits of a prompt. Those of the settings hold where these say nothing. */
  limits?: Limits;
  /** What a setting is called where it was asked for just now. Default: as an option, `--name`. */
  nameOption?: (setting: "allow" | "ask" | "deny") => string;
  /** For tests. */
  fetch?: Fetch;
}

/** An agent with a folder, tools, permissions and a session: what all modes have in common. */
export interface Harness extends ShownAgent {
  readonly agent: Agent;
  readonly toolset: Toolset;
  readonly model: Model;
  /** The modes that it may have. */
  readonly modes: readonly PermissionMode[];
  /** What the administrator of the machine allows at most. */
  readonly policy?: Pick<Policy, "path" | "describe"> | undefined;
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
  /** Has a rule hold that a person gives, until the session is closed. */
  giveRule?(rule: string): Promise<void>;
  /** Takes back a rule that a person gave. Whether there was one. */
  revokeRule?(rule: string): Promise<boolean>;
  /**
   * Has one more folder belong to the workspace. Gives its real path, or nothing where it belongs to it already.
   * Rejects with an error for people where it cannot.
   */
  addFolder?(path: string): Promise<string | undefined>;
  /** Has the session ready; the first prompt does that too. */
  start(): Promise<void>;
  /** Saves a person's answers to pending calls, before they are acted on. */
  decide(decisions: Readonly<Record<string, Decision>>): Promise<void>;
  /**
   * Asks the model something beside the conversation, which knows nothing of it. What it uses
   * is counted with the next prompt. Rejects where there is no whole answer, and on `abort()`.
   */
  ask(prompt: string, signal: AbortSignal): Promise<string>;
  /** The same, with a model that knows the conversation so far. A run may be going on. */
  askAside(question: string, signal: AbortSignal): Promise<string>;
  /** Runs a tool for the user, through permissions and hooks. Nothing of it is in the conversation. */
  callTool(call: UserCall): Promise<AgentToolResult>;
  setModel(name: string): Promise<Model>;
  /** The model that `setModel` would take. Rejects with an error for people. */
  findModel(name: string): Promise<Model>;
  /** Settles when the changes of the queues so far are saved. Rejects where that failed. */
  saved(): Promise<void>;
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
  files: SessionFiles;
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
