import type { AgentTool, ToolPresentation } from "@gyre/agent";
import type { ToolEnv } from "./env.ts";

/**
 * A tool that a toolset can have: what is known of it before it is loaded. It is read at every
 * start of a program, so it imports nothing that works. `Parts`: what the tool is made of.
 */
export interface ToolEntry<Parts = { env: ToolEnv }> {
  readonly name: string;
  readonly presentation: ToolPresentation;
  /** What other programs call such a tool: hooks that were written for them apply here too. */
  readonly aliases?: readonly string[];
  /** It is there only where the options of the toolset have a field with its name. */
  readonly needsOptions?: boolean;
  /** It keeps something of the agent itself: sub-agents do not get it. */
  readonly isPersonal?: boolean;
  /** Loads and makes it. */
  make(parts: Parts): Promise<AgentTool>;
}
