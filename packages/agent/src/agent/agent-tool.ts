import type { AgentTool } from "../contract/types.ts";
import type { AgentToolOptions, PromptSchema } from "./as-tool.ts";

const AGENT_TOOL_TIMEOUT_MS = 3_600_000;
const AGENT_TOOL_GRACE_MS = 500;
const PROMPT_SCHEMA: PromptSchema = {
  type: "object",
  properties: {
    prompt: {
      type: "string",
      description: "The task in full. The agent sees nothing else of this conversation.",
    },
  },
  required: ["prompt"],
};

/**
 * The tool that an agent is for another. `abortGraceMs`: how long the agent's own calls may take
 * to answer an abort; they have to be ended before it can answer.
 */
export function makeAgentTool(
  options: AgentToolOptions,
  abortGraceMs: number,
  execute: AgentTool["execute"],
): AgentTool {
  const { name, description, needsApproval } = options;
  return {
    name,
    description,
    parameters: options.input ?? PROMPT_SCHEMA,
    ...(needsApproval && { needsApproval }),
    concurrent: options.concurrent ?? true,
    timeoutMs: options.timeoutMs ?? AGENT_TOOL_TIMEOUT_MS,
    abortGraceMs: abortGraceMs + AGENT_TOOL_GRACE_MS,
    presentation: { kind: "think", delegates: true },
    execute,
  };
}
