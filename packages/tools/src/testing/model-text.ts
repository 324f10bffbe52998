import { type AgentToolResult, markSources } from "@gyre/agent";
import { textOf } from "@gyre/ai";

/** A result as a model reads it: its texts with where they came from, one below the other. */
export function modelText(result: AgentToolResult | string): string {
  if (typeof result === "string") return result;
  const { content } = markSources({ role: "user", content: result.content, timestamp: 0 });
  if (typeof content === "string") return content;
  return content.map((block) => textOf({ content: [block] })).join("\n");
}
