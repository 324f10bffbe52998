import type { AgentTool, Limits } from "@gyre/agent";
import type { Model, ProtocolClient, ThinkingLevel } from "@gyre/ai";
import type { SessionStorage } from "@gyre/sessions";
import type { ApprovalAnswer, ApprovalRequest, GyrePlugin, PermissionMode } from "@gyre/tools";
import type { AskQuestion, McpServerConfig } from "@gyre/mcp";
import type { Environment } from "./core/environment.ts";
import type { Settings } from "./settings/settings.ts";

/** What the agent may do, and what decides on the rest. */
export interface CodingPermissions {
  /**
   * What it does without asking: "plan" reads alone, "ask" asks before it changes files or runs commands,
   * "auto-edit" asks before it runs commands, "auto" runs them in the sandbox and asks about the network, other
   * folders and what cannot be undone, "full" asks about nothing. Default: "auto" where a sandbox holds, else
   * "ask"; with `approve: "suspend"` "ask".
   */
  mode?: PermissionMode;
  /** Rules for what it may do: "shell(npm test)". */
  allow?: readonly string[];
  /** Rules for what is asked about, whatever the mode. */
  ask?: readonly string[];
  /** Rules for what it may not do, whatever the mode and an approval say. */
  deny?: readonly string[];
  /**
   * What becomes of a question. "deny" (the default): such a call is denied, and the model gets the reason;
   * `denied` of the agent lists it. "suspend": the run ends, `state.pending` has the call, and
   * `continue({ decisions })` answers it, in another process too. A function decides at once;
   * `true` allows this call alone. A command whose effects can only be files has run in a layer over the
   * folder when the function is called, and `effects` of the request says what it did: see `EffectsAnswer`.
   */
  approve?: "deny" | "suspend" | Approve;
  /** Whether commands run in a layer before `approve` is called, where that is possible. Default: true, for a function. */
  effects?: boolean;
}

/** Decides on a call. Where it throws, the call is not made. */
export type Approve = (request: ApprovalRequest) => ApproveAnswer | Promise<ApproveAnswer>;

/** `true` allows a call, or keeps what it did; `false` denies it, or discards that. */
export type ApproveAnswer = boolean | ApprovalAnswer | EffectsAnswer;

/**
 * Keeps some of what a command did, and discards the rest: the paths of `effects`, and all that is below a folder. A
 * path that it did not change is an error, and then nothing is kept.
 */
export interface EffectsAnswer {
  keep: readonly string[];
}

/**
 * Where the conversation is written. "new" (the default): a file among the sessions of `gyre`,
 * made with the first prompt. "latest": the last of those of the folder, or a new one. "none":
 * nowhere, so nothing can be resumed or rewound. An id, or its beginning, resumes a session, with
 * `fork` in a copy; a path is a file to resume, or to make. `storage` has the sessions elsewhere.
 */
export type SessionChoice =
  | "new"
  | "latest"
  | "none"
  | { id: string; fork?: boolean; storage?: SessionStorage }
  | { path: string; id?: never; storage?: never }
  | { storage: SessionStorage };

/** What a coding agent is made of. All is optional; the defaults are those of `gyre`. */
export interface CodingAgentOptions {
  /** The folder to work in. Default: that of the process. */
  cwd?: string;
  /**
   * A model, its name ("sonnet") or service/id. Default: that of the session that is resumed,
   * else of the first service that has a key in `env` or in the user's key file.
   */
  model?: string | Model;
  /** The way to models, in place of the services themselves: a scripted model, a gateway. */
  protocol?: ProtocolClient;
  /** How much the model thinks. Default "off". */
  thinkingLevel?: ThinkingLevel;
  permissions?: CodingPermissions;
  /**
   * Names are the tools that it has, in place of the usual ones: "+git" and "-shell" change
   * those. Tools of your own are added to them, and asked about unless a rule allows them.
   */
  tools?: readonly (string | AgentTool)[];
  /** Added to the system prompt. */
  instructions?: string;
  /** Whether AGENTS.md and its like are read. Default: true. */
  instructionFiles?: boolean;
  /** Whether skills of the folder and of the user are offered. Default: true. */
  skills?: boolean;
  session?: SessionChoice;
  /** Whether what calls do to files is recorded, for `rewind()`. Default: true, with a session. */
  fileHistory?: boolean;
  /** MCP servers by name. Their tools are asked about unless a rule allows them. */
  mcp?: Readonly<Record<string, McpServerConfig>>;
  /** Answers MCP servers that ask a person something in the middle of a call. Default: they are declined. */
  answerServer?: AskQuestion;
  /**
   * Plugins: paths from `cwd` that begin with ./, packages that are installed there, or objects
   * with `registerTools`, whose hooks and middleware are functions of the program.
   */
  plugins?: readonly (string | GyrePlugin)[];
  /** Programs that run at an event, as in the settings. */
  hooks?: Readonly<Record<string, unknown>>;
  /** "auto" (the default): commands run in the sandbox of this system, where it has one. */
  sandbox?: "auto" | "none";
  /** Whether commands in the sandbox reach the network, or the hosts that they reach. Default: false. */
  network?: boolean | readonly string[];
  /** Further folders that belong to the workspace, for tools, commands and the history of files. */
  addDirs?: readonly string[];
  /** Folders outside of `cwd` that commands in the sandbox may change. */
  writable?: readonly string[];
  /** Limits of a prompt. Default: none, not even of turns. */
  limits?: Limits;
  /** Further settings, named as in a settings file. */
  settings?: Settings;
  /**
   * Whether settings of the user's file, of a trusted project and of GYRE_ variables hold where
   * these options say nothing. Default: false: what runs is what the program says.
   */
  settingsFiles?: boolean;
  /**
   * What an administrator allows at most, whatever these options say: "machine" (the default) is
   * that of the machine, where there is one; a path is a file of the program's own; with "none" nothing limits them.
   */
  policy?: "machine" | "none" | { path: string };
  /**
   * Whether the project's settings and MCP servers are used though the user did not trust them
   * with `gyre trust`. They can run programs. Default: false.
   */
  trust?: boolean;
  /** Variables: keys of services, folders for sessions. Default: those of the process. */
  env?: Environment;
  /** Ends the agent's work, as `abort()` does, and refuses more of it. */
  signal?: AbortSignal;
  /** Called with what a person should know and nothing else reports. Default: a process warning. */
  onWarning?: (text: string) => void;
}
