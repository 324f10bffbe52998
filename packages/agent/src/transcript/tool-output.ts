import type { ToolResultMessage } from "@gyre/ai";

/** What an application shows as the output of a call: the value that the tool gave, else its text or content. */
export function readToolOutput({
  content,
  details,
}: Pick<ToolResultMessage, "content" | "details">): unknown {
  if (details !== undefined) return details;
  const [first] = content;
  return content.length === 1 && first?.type === "text" ? first.text : content;
}

/** The text of a result that is an error. */
export function readToolError({ content }: Pick<ToolResultMessage, "content">): string {
  return content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}
