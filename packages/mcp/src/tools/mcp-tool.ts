import type { AgentTool, AgentToolResult } from "@gyre/agent";
import type { InferArguments, TextContent, ToolSchema } from "@gyre/ai";

/** What a call would do, in the form that `permissions` of `@gyre/tools` reads. */
export interface McpAccess {
  /** `none`: it reaches no server. */
  kind: "none" | "network";
  targets: readonly string[];
  /** One line for the person who is asked. */
  summary: string;
}

/** A tool for an agent that can say what a call would do. */
export interface McpTool extends AgentTool<
  ToolSchema,
  InferArguments<ToolSchema>,
  AgentToolResult | string
> {
  access(args: Record<string, unknown>): McpAccess;
}

/** A result of text. Texts of our own that follow each other become one. */
export function textResult(
  text: string | readonly (string | TextContent)[],
  details?: unknown,
): AgentToolResult {
  const content: TextContent[] = [];
  for (const part of typeof text === "string" ? [text] : text) {
    const last = content.at(-1);
    if (typeof part !== "string") content.push(part);
    else if (last && last.source === undefined) last.text += `\n${part}`;
    else content.push({ type: "text", text: part });
  }
  return { content, ...(details !== undefined && { details }) };
}

export function failed(text: Parameters<typeof textResult>[0]): AgentToolResult {
  return { ...textResult(text), isError: true };
}
