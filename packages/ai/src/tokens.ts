import type { Message } from "./messages.ts";
// A first draft by the lead so that the build works; to be replaced.
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}
export function estimateMessageTokens(message: Message): number {
  return estimateTokens(JSON.stringify(message.content));
}
