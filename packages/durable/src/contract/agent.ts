import type { Agent, AgentOptions } from "@gyre/agent";
import type { Session, SessionSettings } from "@gyre/sessions";
import { DurableError } from "./errors.ts";

/** A run that a worker is about to work on. */
export interface OpenRun {
  readonly id: string;
  readonly session: string;
  readonly tenant: string;
  /** Counts the workers that had the session. */
  readonly activation: number;
  readonly meta: Readonly<Record<string, string>>;
  /** System prompt and tools as the run began: requests stay the same. */
  readonly settings: SessionSettings;
  /**
   * The session itself, for entries of one's own: they are stored with the next step. What the
   * agent does is written by the worker. Its header has the folder of a session that a program made.
   */
  readonly transcript: Session;
  /** Fires when the claim is lost, and when the worker stops. */
  readonly signal: AbortSignal;
}

/** What an agent of a worker gives; transcript, queues, sink and decisions are the worker's. */
export type DurableAgentOptions = Omit<
  AgentOptions,
  | "messages"
  | "pending"
  | "queued"
  | "compaction"
  | "interrupted"
  | "sink"
  | "sinkTimeoutMs"
  | "unfinished"
  | "onQueueChange"
  | "sessionId"
>;

/**
 * Makes the agent of an activation, for a program that has a class of its own. `complete` adds what
 * is the worker's to the options.
 */
export type CreateDurableAgent = (
  complete: (options: DurableAgentOptions) => AgentOptions,
) => Agent;

/** An agent that workers can open for any run of its name. */
export interface DurableAgent {
  readonly name: string;
  readonly version: string;
  /** Which versions' runs it goes on with. Default: all; a tool that is gone answers "not found". */
  accepts?(version: string): boolean;
  /** Called for each activation: model, instructions, tools, middleware. The transcript is added to it. */
  open(
    run: OpenRun,
  ): DurableAgentOptions | CreateDurableAgent | Promise<DurableAgentOptions | CreateDurableAgent>;
  /** Called when the activation is over. */
  close?(run: OpenRun): void | Promise<void>;
}

const NAME = /^[\w.:/-]{1,128}$/;

/** The same object, checked: throws on a name that no run could have. */
export function defineAgent(agent: DurableAgent): DurableAgent {
  if (typeof agent.name !== "string" || !NAME.test(agent.name)) {
    throw new DurableError(
      "invalid",
      `The name of an agent has letters, digits and "_", ".", ":", "/", "-" alone: got ${JSON.stringify(agent.name)}.`,
    );
  }
  if (typeof agent.version !== "string" || agent.version === "") {
    throw new DurableError(
      "invalid",
      `Agent "${agent.name}" has no version: give it one, such as "1".`,
    );
  }
  if (typeof agent.open !== "function") {
    throw new DurableError(
      "invalid",
      `Agent "${agent.name}" has no \`open\`: write open: () => ({ model }).`,
    );
  }
  return agent;
}
