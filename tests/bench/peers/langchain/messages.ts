import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { ClientTool } from "@langchain/core/tools";
import { tool } from "langchain";
import { z } from "zod";
import type { Plain, Tool } from "../peer.ts";

const histories = new WeakMap<readonly Plain[], BaseMessage[]>();

/** Many runs begin with the same history, which is turned into messages once. */
export function convertHistory(history: readonly Plain[]): BaseMessage[] {
  const known = histories.get(history);
  if (known) return known;
  const made = history.map(toMessage);
  histories.set(history, made);
  return made;
}

function toMessage({ role, text, calls = [], answers = "", name = "" }: Plain): BaseMessage {
  if (role === "user") return new HumanMessage(text);
  if (role === "tool") return new ToolMessage({ content: text, tool_call_id: answers, name });
  return new AIMessage({
    content: text,
    tool_calls: calls.map(({ id, name, input }) => ({ type: "tool_call", id, name, args: input })),
  });
}

export function toPlain(message: BaseMessage): Plain {
  const { text } = message;
  if (ToolMessage.isInstance(message)) {
    const { tool_call_id: answers, name = "" } = message;
    return { role: "tool", text, answers, name };
  }
  if (!AIMessage.isInstance(message)) return { role: "user", text };
  const calls = (message.tool_calls ?? []).map(({ id = "", name, args }) => ({
    id,
    name,
    input: args as Record<string, unknown>,
  }));
  return { role: "assistant", text, ...(calls.length === 0 ? {} : { calls }) };
}

const zodOf = { string: z.string(), number: z.number() };
const tools = new WeakMap<Tool, ClientTool>();

/** A tool is defined once, and used in many runs. */
export function toTool(definition: Tool): ClientTool {
  const known = tools.get(definition);
  if (known) return known;
  const { name, description, parameters, run } = definition;
  const schema = z.object(
    Object.fromEntries(Object.entries(parameters).map(([key, type]) => [key, zodOf[type]])),
  );
  const made = tool((input, { signal }: { signal?: AbortSignal }) => run(input, signal), {
    name,
    description,
    schema,
  });
  tools.set(definition, made);
  return made;
}
