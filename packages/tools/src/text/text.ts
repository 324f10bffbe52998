import type { AgentToolResult } from "@gyre/agent";
import type { TextContent } from "@gyre/ai";

/**
 * A result of text, with details for the application. Of several parts, texts of our own that
 * follow each other become one.
 */
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

/** A whole number with its thousands apart. The first `toLocaleString` of a process takes 10 ms. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** A count with its word: "1 line", "2 lines", "3 matches". */
export function counted(count: number, word: string, words = `${word}s`): string {
  return `${grouped(count)} ${count === 1 ? word : words}`;
}

/** The same where only some are shown: "100 of 5,000 matches". */
export function countShown(shown: number, count: number, word: string, words?: string): string {
  return `${shown < count ? `${grouped(shown)} of ` : ""}${counted(count, word, words)}`;
}

/**
 * A number that a call gives. Less than makes sense is an error; more than there may be is
 * taken for as much as there may be.
 */
export function within(
  name: string,
  value: number,
  { least, most = Number.POSITIVE_INFINITY }: { least: number; most?: number },
): number {
  if (value < least) throw new Error(`${name} has to be at least ${least}; it is ${value}.`);
  return Math.min(value, most);
}
