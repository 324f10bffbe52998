import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { ClientTool } from "@langchain/core/tools";
import { tool } from "langchain";
import { z } from "zod";
import { once } from "../once.ts";
import type { Plain, Tool } from "../peer.ts";

/** Many runs begin with the same history, which is turned into messages once. */
export const convertHistory = once((history: readonly Plain[]) => history.map(toMessage));

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

/** A tool is defined once, and used in many runs. */
export const toTool = once(({ name, description, parameters, run }: Tool): ClientTool => {
  const schema = z.object(
    Object.fromEntries(Object.entries(parameters).map(([key, type]) => [key, zodOf[type]])),
  );
  const made = tool((input, { signal }: { signal?: AbortSignal }) => run(input, signal), {
    name,
    description,
    schema,
  });
  return made;
});
