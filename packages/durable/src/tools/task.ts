import { type AgentTool, defineTool } from "@gyre/agent";
import { waitFor } from "./wait.ts";

export interface DurableTaskOptions {
  /** The name of the agent that works on the task, as workers know it. */
  agent: string;
  /** Default "task". */
  name?: string;
  /** For the model: what the agent is good for. */
  description?: string;
  /** Default: the pool of the run that calls it. */
  pool?: string;
}

/**
 * A sub-agent as a run of its own: it is started once, in the commit that parks the calling run,
 * and its end is the result of the call, wherever both are worked on. It may spend what is left of
 * the limits of the calling run, and is aborted with it.
 */
export function durableTask(options: DurableTaskOptions): AgentTool {
  const { agent, name = "task", pool } = options;
  return defineTool({
    name,
    description: options.description ?? "Gives a task to another agent and waits for its answer.",
    parameters: {
      type: "object",
      properties: {
        prompt: {
          type: "string",
          description: "The task in full. The agent sees nothing else of this conversation.",
        },
      },
      required: ["prompt"],
    },
    concurrent: true,
    idempotent: true,
    execute({ prompt }, { host }) {
      const limits = host.left?.();
      throw waitFor(`Waits for an agent "${agent}".`, {
        for: "child",
        agent,
        prompt,
        ...(pool !== undefined && { pool }),
        ...(limits && Object.keys(limits).length > 0 && { limits }),
      });
    },
  });
}
