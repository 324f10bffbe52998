// The agent of the chat: one tool, which a person has to approve.
import { Agent, defineTool } from "@gyre/agent";
import type { Context } from "@gyre/ai";
import { call, fail, type ScriptAnswer, scriptedModel } from "@gyre/ai/testing";

const refund = defineTool({
  name: "refund",
  description: "Refunds an order.",
  parameters: {
    type: "object",
    properties: { euros: { type: "number" } },
    required: ["euros"],
  },
  needsApproval: true,
  execute: ({ euros }) => `${euros} euros are on their way.`,
});

const numbers = Array.from({ length: 100 }, (_, at) => at + 1).join(" ");
const script = scriptedModel(answer, { chunkSize: 4, betweenMs: 30, keepCalls: false });

/** A new agent: of the model that `GYRE_MODEL` names, or of one that follows a script and needs no key. */
export function createAgent(): Agent {
  const name = process.env["GYRE_MODEL"];
  const model = name ? { model: name } : { model: script.model, protocol: script };
  return new Agent({ ...model, tools: [refund], instructions: "You work for a tea shop." });
}

/** What the script says: "refund" has it call the tool, "fail" fails, all else is counted to. */
function answer({ messages }: Context): ScriptAnswer {
  const { role, content } = messages.at(-1) ?? { role: "user", content: "" };
  const blocks = typeof content === "string" ? [{ text: content }] : content;
  const text = blocks.map((block) => ("text" in block ? block.text : "")).join("");
  if (role === "toolResult") return `The tool gave: ${text}`;
  if (/refund/i.test(text)) return ["One moment.", call("refund", { euros: 5 })];
  if (/fail/i.test(text)) return fail("The key sk-… is not valid.", { kind: "auth" });
  return `You said "${text}". ${numbers}`;
}
