import type { AgentToolResult } from "@gyre/agent";

/** A result of text, with what the application may want to know of it. */
export function textResult(text: string, details?: unknown): AgentToolResult {
  return { content: [{ type: "text", text }], ...(details !== undefined && { details }) };
}

/** A count with its word: "1 line", "2 lines". */
export function counted(count: number, word: string): string {
  return `${count.toLocaleString("en-US")} ${word}${count === 1 ? "" : "s"}`;
}
