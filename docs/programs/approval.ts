import { readFileSync, writeFileSync } from "node:fs";
import { Agent, defineTool } from "@gyre/agent";
const refund = defineTool({
  name: "refund",
  description: "Refunds an order.",
  parameters: { type: "object", properties: { order: { type: "number" } } },
  needsApproval: true,
  execute: ({ order }) => `Order ${order} is refunded.`,
});
const [id] = process.argv.slice(2);
const kept = id ? JSON.parse(readFileSync("kept.json", "utf8")) : {};
const agent = new Agent({ model: "anthropic/claude-sonnet-4-5", tools: [refund], ...kept });
const decisions = id ? { [id]: { type: "approve" as const } } : {};
const { text, pending } = await (id ? agent.continue({ decisions }) : agent.prompt("Refund 7."));
writeFileSync("kept.json", JSON.stringify({ messages: agent.state.messages, pending }));
console.log(text || pending[0]?.toolCall.id);
