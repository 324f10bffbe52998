import {
  type ContentBlock,
  type JSONValue,
  Message,
  TextBlock,
  ToolResultBlock,
  ToolUseBlock,
} from "@strands-agents/sdk";
import { once } from "../once.ts";
import type { Plain } from "../peer.ts";

/**
 * A history in the library's form, made once for each array. The results of a turn are
 * one message of the user, as the library has them itself.
 */
export const toMessages = once((history: readonly Plain[]): Message[] => {
  const messages: Message[] = [];
  let results: ContentBlock[] | undefined;
  for (const plain of history) {
    if (plain.role === "tool") {
      if (!results) {
        results = [];
        messages.push(new Message({ role: "user", content: results }));
      }
      results.push(toResult(plain));
    } else {
      results = undefined;
      messages.push(plain.role === "user" ? toUser(plain) : toAssistant(plain));
    }
  }
  return messages;
});

function toUser({ text }: Plain): Message {
  return new Message({ role: "user", content: [new TextBlock(text)] });
}

function toAssistant({ text, calls = [] }: Plain): Message {
  return new Message({
    role: "assistant",
    content: [
      ...(text === "" ? [] : [new TextBlock(text)]),
      ...calls.map(
        ({ id, name, input }) =>
          // The type does not say that what a model sent is JSON.
          new ToolUseBlock({ toolUseId: id, name, input: input as JSONValue }),
      ),
    ],
  });
}

function toResult({ text, answers = "" }: Plain): ToolResultBlock {
  return new ToolResultBlock({
    toolUseId: answers,
    status: "success",
    content: [new TextBlock(text)],
  });
}

/** The library's messages as plain ones; a result is a message of its own again. */
export function toPlain(messages: readonly Message[]): Plain[] {
  const names = new Map<string, string>();
  const plain: Plain[] = [];
  for (const { role, content } of messages) {
    let text = "";
    let results = 0;
    const calls = [];
    for (const block of content) {
      if (block.type === "textBlock") text += block.text;
      else if (block.type === "toolUseBlock") {
        names.set(block.toolUseId, block.name);
        calls.push({
          id: block.toolUseId,
          name: block.name,
          input: block.input as Record<string, unknown>,
        });
      } else if (block.type === "toolResultBlock") {
        results++;
        plain.push(fromResult(block, names.get(block.toolUseId) ?? ""));
      }
    }
    if (results > 0 && text === "") continue;
    plain.push({ role, text, ...(calls.length === 0 ? {} : { calls }) });
  }
  return plain;
}

function fromResult({ toolUseId, content }: ToolResultBlock, name: string): Plain {
  const text = content.map((block) => (block.type === "textBlock" ? block.text : "")).join("");
  return { role: "tool", text, answers: toolUseId, name };
}
