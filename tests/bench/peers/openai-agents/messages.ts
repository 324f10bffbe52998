import type { AgentInputItem } from "@openai/agents";
import { once } from "../once.ts";
import type { Plain } from "../peer.ts";

const toHistory = once((history: readonly Plain[]) => history.flatMap(toItems));

/** The history and the prompt "go"; the items of a history are made once. */
export function buildInput(history: readonly Plain[] = []): AgentInputItem[] {
  return [...toHistory(history), { role: "user", content: "go" }];
}

function toItems({ role, text, calls = [], answers = "", name = "" }: Plain): AgentInputItem[] {
  if (role === "user") return [{ role, content: text }];
  if (role === "tool") {
    const output = { type: "text" as const, text };
    return [{ type: "function_call_result", callId: answers, name, status: "completed", output }];
  }
  const items: AgentInputItem[] = calls.map(({ id, name, input }) => ({
    type: "function_call",
    callId: id,
    name,
    status: "completed",
    arguments: JSON.stringify(input),
  }));
  if (text === "" && items.length > 0) return items;
  const content = [{ type: "output_text" as const, text }];
  return [{ role, status: "completed", content }, ...items];
}

/** Calls are items of their own here; they go to the message of the assistant before them. */
export function toPlain(items: readonly AgentInputItem[]): Plain[] {
  const messages: (Plain & { calls?: Call[] })[] = [];
  for (const item of items) {
    if (item.type === "function_call") {
      const call = { id: item.callId, name: item.name, input: inputFrom(item.arguments) };
      const last = messages.at(-1);
      if (last?.role !== "assistant") messages.push({ role: "assistant", text: "", calls: [call] });
      else if (last.calls) last.calls.push(call);
      else messages[messages.length - 1] = { ...last, calls: [call] };
    } else if (item.type === "function_call_result") {
      const { callId: answers, name } = item;
      messages.push({ role: "tool", text: toText(item.output), answers, name });
    } else if ("role" in item) {
      const role = item.role === "assistant" ? "assistant" : "user";
      messages.push({ role, text: toText(item.content) });
    }
  }
  return messages;
}

type Call = NonNullable<Plain["calls"]>[number];

function inputFrom(json: string): Record<string, unknown> {
  try {
    return JSON.parse(json) as Record<string, unknown>;
  } catch {
    return {};
  }
}

type Content = string | object | readonly object[];

function toText(content: Content): string {
  if (typeof content === "string") return content;
  const blocks = Array.isArray(content) ? content : [content];
  return blocks.map((block) => ("text" in block ? String(block.text) : "")).join("");
}
