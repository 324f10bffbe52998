import type { ToolEntry } from "../../contract/entry.ts";
import { looseText } from "../../contract/loose.ts";
import type { SubAgentParts } from "../sub-agent.ts";
import type { OracleOptions } from "./tool.ts";

export const oracleEntry: ToolEntry<
  SubAgentParts<{ oracle?: Omit<OracleOptions, "tools" | "middleware"> }>
> = {
  name: "oracle",
  presentation: {
    kind: "think",
    verb: "Ask:",
    title: (args) => looseText(args, "question"),
    delegates: true,
  },
  needsOptions: true,
  async make({ env, shared, options: { oracle, middleware } }) {
    if (!oracle) throw new Error("The oracle needs a model to ask.");
    const { oracleTool } = await import("./tool.ts");
    const tools = [...shared.values()].filter((tool) => tool.presentation?.effects?.({}).reads);
    return oracleTool(env, { ...oracle, ...(middleware && { middleware }), tools });
  },
};
