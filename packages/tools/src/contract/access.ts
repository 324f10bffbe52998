import type { AgentTool, AgentToolResult, ToolContext } from "@gyre/agent";
import type { InferArguments, ToolSchema } from "@gyre/ai";
import type { Rehearsal } from "./rehearsal.ts";

/** What a call would do. The tool declares it before it runs, for rules and for people. */
export interface Access {
  /** `none`: nothing outside of the agent itself. */
  kind: "none" | "read" | "write" | "run" | "network" | "agent";
  /**
   * What it would touch, resolved: workspace paths with links followed, the command line,
   * the URL. What is approved is this, not what the model wrote.
   */
  targets: readonly string[];
  /** Files beside `targets` that it would show, or carry elsewhere: rules on reading hold for them. */
  reads?: readonly string[];
  /** Places outside of the workspace that it would read, absolute: asked about, and opened for it when it is allowed. */
  outside?: readonly string[];
  /** With `run`: the folder of the workspace that it runs in, links followed; "." is its own. */
  folder?: string;
  /** With `run`: what reads it where that is not bash. */
  language?: "sh";
  /** Cannot be taken back by an ordinary undo: asked about also where its kind is allowed. */
  destructive?: boolean;
  /** Asks to run outside of the sandbox. */
  unsandboxed?: boolean;
  /** A reason to ask where its kind is allowed by the mode, as a sentence. Rules can allow it. */
  concern?: string;
  /** One line for the person who is asked. */
  summary: string;
}

/** A tool that can say what a call would do. One that cannot is always asked about. */
export interface GuardedTool<S extends ToolSchema = ToolSchema> extends AgentTool<
  S,
  InferArguments<S>,
  AgentToolResult | string
> {
  /** Throws where the call makes no sense: it is then denied with these words. */
  access(args: Record<string, unknown>): Access | Promise<Access>;
  /**
   * Rejects, and changes nothing, where the call would fail as things are now: a person is not
   * asked about it then, and the model gets the error. Called only where rules on reading let
   * the model see what `access` names. `execute` has to check all of it again.
   */
  check?(args: Record<string, unknown>): Promise<void>;
  /**
   * Does the work so that nothing is changed yet, and says what would be. `execute` with the same id then
   * makes those changes that were chosen, in place of its work.
   */
  rehearse?(
    args: Record<string, unknown>,
    context: Pick<ToolContext, "id" | "signal">,
  ): Promise<Rehearsal>;
}

/** Whether a tool can say what a call would do. */
export function isGuarded(tool: AgentTool): tool is GuardedTool {
  return "access" in tool && typeof tool.access === "function";
}
