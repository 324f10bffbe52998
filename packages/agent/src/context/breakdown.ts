import { estimateContextTokens, estimateMessageTokens, type Model, type ToolCall } from "@gyre/ai";
import type { Compaction, ContextConfig } from "../contract/compaction.ts";
import { applyCompaction, contextLimits } from "./compaction.ts";
import { classifyCall } from "./facts.ts";
import { ContextMemory } from "./memory.ts";
import { listCalls } from "../transcript/history.ts";
import type { AgentMessage, AgentTool } from "../contract/types.ts";

/** The parts of a request. `AgentState` has all of them. */
export interface ContextParts {
  systemPrompt?: string;
  tools?: readonly AgentTool[];
  messages: readonly AgentMessage[];
  compaction?: Compaction | undefined;
  model?: Model | undefined;
}

/** Tokens of the next request, estimated, by what they are for. */
export interface ContextBreakdown {
  system: number;
  tools: number;
  /** Results of calls that read files. */
  files: number;
  /** All other results. */
  results: number;
  /** Texts of the user and the model, calls, and summaries. */
  messages: number;
  total: number;
  /** What is left until the context is compacted. */
  free: number;
  /** The size at which the context is compacted. */
  trigger: number;
  /** The model's window, if it is known. */
  window?: number;
}

/** Measures the parts of the next request. */
export function contextBreakdown(
  { systemPrompt, tools = [], messages, compaction, model }: ContextParts,
  config: ContextConfig = {},
): ContextBreakdown {
  const sent = compaction ? applyCompaction(messages, compaction) : messages;
  const findTool = (name: string): AgentTool | undefined =>
    tools.find((tool) => tool.name === name);
  const classify = config.classifyCall ?? ((call: ToolCall) => classifyCall(call, findTool));
  const reading = new Set<string>();
  const readsFiles = (call: ToolCall): boolean => classify(call).reads === true;
  let files = 0;
  let results = 0;
  let texts = 0;
  const memory = new ContextMemory(config);
  for (const message of sent.flatMap((each) => memory.toRead(each) ?? [])) {
    if (message.role === "assistant") {
      for (const call of listCalls(message)) if (readsFiles(call)) reading.add(call.id);
    }
    const size = estimateMessageTokens(message);
    if (message.role !== "toolResult") texts += size;
    else if (reading.has(message.toolCallId)) files += size;
    else results += size;
  }
  const system = systemPrompt ? estimateContextTokens({ systemPrompt, messages: [] }) : 0;
  const offered = estimateContextTokens({ tools, messages: [] });
  const total = system + offered + files + results + texts;
  const unknown: Model = { id: "", name: "", api: "", provider: "" };
  const { trigger, window } = contextLimits(config, model ?? unknown);
  return {
    system,
    tools: offered,
    files,
    results,
    messages: texts,
    total,
    free: Math.max(0, trigger - total),
    trigger,
    ...(Number.isFinite(window) && { window }),
  };
}
