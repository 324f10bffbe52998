import { isRecord } from "@gyre/ai";

export const MAX_PROMPT_CHARS = 200;

/** What a prompt says, on one line and cut short. */
export function formatPrompt(content: unknown): string {
  return cut(promptText(content).trim().replace(/\s+/g, " "));
}

function promptText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block) => (isRecord(block) && typeof block["text"] === "string" ? block["text"] : ""))
    .join(" ");
}

function cut(text: string): string {
  if (text.length <= MAX_PROMPT_CHARS) return text;
  // No half of a pair is left at the end.
  return `${text.slice(0, MAX_PROMPT_CHARS - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
