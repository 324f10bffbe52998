/** A kind of sub-agent, which a call asks for by its name. */
export interface AgentKind {
  readonly name: string;
  /** What it is for, in a few words: the model reads it with every request. */
  readonly description: string;
  /** Its own instructions, which follow those of every sub-agent. */
  readonly instructions?: string;
  /** Its tools, by name; those that are not there are left out. Default: all. */
  readonly tools?: readonly string[];
  /** Refuses calls that do more than read, and tools that do not declare what a call would do. */
  readonly onlyReads?: boolean;
  /** Its model, as `TaskOptions.findModel` knows it. Default: that of the caller. */
  readonly model?: string;
}

/** Looks around, and changes nothing. */
export const EXPLORE: AgentKind = {
  name: "explore",
  description: "only reads",
  tools: ["read", "grep", "find", "ls", "git", "skill"],
  onlyReads: true,
};

/** Has what its caller has. */
export const GENERAL: AgentKind = { name: "general", description: "all tools, default" };

/** The kinds that are always there. */
export const AGENT_KINDS: readonly AgentKind[] = [EXPLORE, GENERAL];
