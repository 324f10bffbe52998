import { randomUUID } from "node:crypto";
import { type AgentTool, defineTool, type ToolContext } from "@gyre/agent";
import { call, scriptedModel } from "@gyre/ai/testing";
import { defineAgent, type DurableAgent, type OpenRun } from "../contract/agent.ts";
import type { Journal } from "./journal.ts";
import { type PlannedTool, planRun, type RunPlan } from "./plan.ts";

export const SCRIPTED_AGENT = "scripted";

/** Tools that say of themselves that they may run again. */
export const IDEMPOTENT: ReadonlySet<PlannedTool> = new Set(["look"]);

/** An agent whose model and tools follow the plan of each run, and note what they do. */
export function createScriptedAgent(journal: Journal, seed: number): DurableAgent {
  return defineAgent({
    name: SCRIPTED_AGENT,
    version: "1",
    open: (run) => {
      const plan = planRun(seed, run.id);
      const model = scriptedModel(
        ({ messages }) => {
          const index = messages.filter(({ role }) => role === "assistant").length;
          journal.write({ at: "ask", session: run.session, token: run.activation, index });
          const answer = plan.answers[index];
          if (!answer) return "Done.";
          const { delayMs, calls } = answer;
          return [...calls.map(({ id, tool }) => call(tool, {}, id)), { delayMs }];
        },
        { keepCalls: false },
      );
      return {
        model: model.model,
        protocol: model,
        instructions: "Work.",
        tools: createTools(journal, run, plan),
      };
    },
  });
}

function createTools(journal: Journal, run: OpenRun, plan: RunPlan): AgentTool[] {
  const calls = new Map(
    plan.answers.flatMap((answer) => answer.calls).map((each) => [each.id, each]),
  );
  const effect = (tool: PlannedTool, more: Partial<AgentTool> = {}): AgentTool => ({
    ...defineTool({
      name: tool,
      description: tool,
      parameters: { type: "object" },
      execute: async (_args, { id, host }) => {
        const head = {
          session: run.session,
          token: run.activation,
          call: id,
          tool,
          key: host.key ?? "",
        };
        journal.write({ at: "begin", ...head });
        const { ms = 0 } = calls.get(id) ?? {};
        if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
        const nonce = randomUUID();
        journal.write({ at: "end", ...head, nonce });
        return nonce;
      },
    }),
    ...more,
  });
  return [
    effect("pay", { concurrent: true }),
    effect("look", { concurrent: true, idempotent: IDEMPOTENT.has("look") }),
    effect("sign", { needsApproval: true }),
    effect("check", {
      recover: (_args: unknown, { id }: ToolContext) => `recovered ${id}`,
    }),
  ];
}
