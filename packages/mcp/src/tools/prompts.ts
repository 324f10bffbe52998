import type { GetPromptResult, Prompt } from "@modelcontextprotocol/client";
import type { UserContent } from "@gyre/ai";
import { cutText, sanitize } from "@gyre/ai/text";
import { toBlock } from "./result.ts";

/** Of a prompt; a server that has more to say can do so in resources. */
const MAX_PROMPT_CHARS = 200_000;
const MAX_ABOUT_CHARS = 500;

/** A prompt that a server has for its users. Its texts are the server's, made safe to show. */
export interface McpPrompt {
  server: string;
  /** As the server calls it. */
  name: string;
  description?: string;
  arguments: readonly { name: string; description?: string; isRequired: boolean }[];
}

export function toMcpPrompt(server: string, prompt: Prompt): McpPrompt {
  const { name, title, description = title, arguments: args = [] } = prompt;
  return {
    server,
    name,
    ...(description !== undefined && { description: oneLine(description) }),
    arguments: args.map((one) => ({
      name: one.name,
      ...(one.description !== undefined && { description: oneLine(one.description) }),
      isRequired: one.required === true,
    })),
  };
}

/** What a user says by choosing a prompt. Words that it puts into the mouth of the model say so. */
export function toUserContent({ messages }: GetPromptResult): UserContent[] {
  const content: UserContent[] = [];
  for (const message of messages) {
    const block = toBlock(message.content);
    if (typeof block !== "string") {
      content.push(block);
      continue;
    }
    const text = message.role === "user" ? block : `Assistant: ${block}`;
    const last = content.at(-1);
    if (last?.type === "text") last.text += `\n\n${text}`;
    else content.push({ type: "text", text });
  }
  for (const block of content) {
    if (block.type === "text") block.text = sanitize(cutText(block.text, MAX_PROMPT_CHARS));
  }
  return content;
}

function oneLine(text: string): string {
  return sanitize(cutText(text, MAX_ABOUT_CHARS), { keepNewlines: false });
}
