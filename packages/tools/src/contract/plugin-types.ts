import type { AgentEvent, AgentTool, defineTool, Middleware } from "@gyre/agent";
import type { GuardedTool } from "./access.ts";

/**
 * A plugin of the program `gyre`: an ES module that exports `registerTools`, or has an
 * object with it as its default export.
 */
export interface GyrePlugin {
  /**
   * Called once for each conversation that is opened. It times out after ten seconds.
   * What is registered holds once this has settled; if it throws, nothing of it does.
   */
  registerTools(registry: PluginRegistry, api: PluginApi): void | Promise<void>;
}

/** Where a plugin puts its tools. */
export interface PluginRegistry {
  /**
   * Adds a tool. Throws where something is wrong with it, or its name is taken; the plugin
   * is then left out. One without `access` is asked about as a tool that does not declare what
   * it does.
   */
  register(tool: AgentTool | GuardedTool): void;
}

/**
 * What else a plugin may do. All but `log` throws once `registerTools` has settled: what a
 * conversation has is known when it begins.
 */
export interface PluginApi {
  /** The folder that is worked in, absolute. */
  readonly cwd: string;
  /** Of the program. */
  readonly version: string;
  /** A copy, for reading. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Shows the user a line, on stderr. */
  log(text: string): void;
  /** Goes around calls of models and tools, outside of hooks and permissions. */
  middleware(middleware: Middleware): void;
  command(command: PluginCommand): void;
  /** Called as a hook of the settings would be. */
  hook<E extends HookEvent>(event: E, hook: PluginHook): void;
  /** Called with what the agent does. The user sees what it throws; nothing else happens. */
  on<T extends AgentEvent["type"]>(
    type: T,
    listener: (event: Extract<AgentEvent, { type: T }>) => void | Promise<void>,
  ): void;
  readonly defineTool: typeof defineTool;
}

/** A command of the user, written as `/name and what follows it`. */
export interface PluginCommand {
  /** Small letters, digits and dashes. */
  name: string;
  /** One line for the list of commands. */
  about: string;
  /** What to write behind its name. */
  hint?: string;
  /** What it gives is shown to the user; so is what it throws. */
  run(rest: string): string | Promise<string>;
}

/** The moments at which hooks are called. */
export type HookEvent =
  | "PreToolUse"
  | "PostToolUse"
  | "UserPromptSubmit"
  | "SessionStart"
  | "Stop"
  | "PreCompact";

/** What a hook gets: as JSON on standard input, or as an object. */
export interface HookInput {
  session_id: string;
  /** The session file; empty where nothing is written down. */
  transcript_path: string;
  cwd: string;
  hook_event_name: HookEvent;
  /** Of `PreToolUse` and `PostToolUse`. */
  tool_name?: string;
  tool_input?: Record<string, unknown>;
  tool_use_id?: string;
  /** Of `PostToolUse`. */
  tool_response?: unknown;
  /** Of `UserPromptSubmit`. */
  prompt?: string;
  /** Of `SessionStart`. */
  source?: "startup" | "resume";
  /** Of `Stop`: the agent goes on already because a hook wanted it to. */
  stop_hook_active?: boolean;
  /** Of `PreCompact`. */
  trigger?: "manual" | "auto";
}

/** What a hook wants. Nothing at all: that it goes on as it would. */
export interface HookAnswer {
  /** Why it must not go on. */
  block?: string;
  /** Of `PreToolUse`: counts as a rule for this one call. */
  permission?: "allow" | "ask";
  /** Why, for people. */
  reason?: string;
  /** Of `PreToolUse`: the arguments to use instead. */
  input?: Record<string, unknown>;
  /** A text for the model. */
  context?: string;
  /** A line for the user. */
  message?: string;
}

/** The user sees what it throws, and the run goes on as if the hook returned nothing. */
export type PluginHook = (
  input: HookInput,
  signal: AbortSignal,
) => HookAnswer | undefined | void | Promise<HookAnswer | undefined | void>;
