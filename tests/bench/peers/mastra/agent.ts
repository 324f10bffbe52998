import { Agent, type AgentConfig } from "@mastra/core/agent";
import { noopLogger } from "@mastra/core/logger";
import type { toTool } from "./tool.ts";

process.env["MASTRA_TELEMETRY_DISABLED"] = "1";

/** An agent that does not print what fails, or little of it; by default it never retries. */
export function quietAgent(
  model: AgentConfig["model"],
  tools: Record<string, ReturnType<typeof toTool>> = {},
): Agent {
  const agent = new Agent({ id: "bench", name: "bench", instructions: "", model, tools });
  // oxlint-disable-next-line no-underscore-dangle -- a `Mastra` does so, but has a storage too
  agent.__registerPrimitives({ logger: noopLogger });
  return agent;
}
