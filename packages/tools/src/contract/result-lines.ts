import type { AgentToolResult } from "@gyre/agent";

/** The first lines of a result's text, which are what it found. */
export function takeLines({ content }: Pick<AgentToolResult, "content">, count: number): string[] {
  const [first] = content;
  return first?.type === "text" ? first.text.split("\n", count) : [];
}
