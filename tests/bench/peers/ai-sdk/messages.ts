import type { ModelMessage } from "ai";
import { once } from "../once.ts";
import type { Plain, Work } from "../peer.ts";

const none: readonly Plain[] = [];
const toPrompt = once((history: readonly Plain[]): ModelMessage[] => [
  ...toMessages(history),
  { role: "user", content: "go" },
]);

/** What was said before and the prompt "go"; the same array for the same history. */
export function buildPrompt({ history = none }: Work): ModelMessage[] {
  return toPrompt(history);
}

/** In the library's form the results of one turn are one message. */
function toMessages(history: readonly Plain[]): ModelMessage[] {
  const messages: ModelMessage[] = [];
  for (const { role, text, calls = [], answers = "", name = "" } of history) {
    if (role === "user") {
      messages.push({ role, content: text });
    } else if (role === "assistant") {
      messages.push({
        role,
        content: [
          ...(text === "" ? [] : [{ type: "text" as const, text }]),
          ...calls.map(({ id, name, input }) => ({
            type: "tool-call" as const,
            toolCallId: id,
            toolName: name,
            input,
          })),
        ],
      });
    } else {
      const result = {
        type: "tool-result" as const,
        toolCallId: answers,
        toolName: name,
        output: { type: "text" as const, value: text },
      };
      const last = messages.at(-1);
      if (last?.role === "tool") last.content.push(result);
      else messages.push({ role, content: [result] });
    }
  }
  return messages;
}

export function toPlain(message: ModelMessage): Plain[] {
  if (message.role === "tool") {
    return message.content.flatMap((part) =>
      part.type === "tool-result"
        ? [
            {
              role: "tool" as const,
              text: toText(part.output),
              answers: part.toolCallId,
              name: part.toolName,
            },
          ]
        : [],
    );
  }
  const parts =
    typeof message.content === "string"
      ? [{ type: "text" as const, text: message.content }]
      : message.content;
  const calls = parts.flatMap((part) =>
    part.type === "tool-call"
      ? [
          {
            id: part.toolCallId,
            name: part.toolName,
            input: part.input as Record<string, unknown>,
          },
        ]
      : [],
  );
  return [
    {
      role: message.role === "assistant" ? "assistant" : "user",
      text: parts.map((part) => (part.type === "text" ? part.text : "")).join(""),
      ...(calls.length === 0 ? {} : { calls }),
    },
  ];
}

function toText(output: { type: string; value?: unknown }): string {
  return typeof output.value === "string" ? output.value : JSON.stringify(output);
}
