import { existsSync } from "node:fs";
import { Agent, defineTool } from "@gyre/agent";
import { createJournal, createSession, openSession } from "@gyre/sessions";
const refund = defineTool({
  name: "refund",
  description: "Refunds an order.",
  parameters: { type: "object", properties: { order: { type: "number" } } },
  needsApproval: true,
  execute: ({ order }) => `Order ${order} is refunded.`,
});
const path = "order-7.jsonl";
const session = await (existsSync(path) ? openSession(path) : createSession(path, { cwd: "." }));
const context = await session.context();
const sink = createJournal(session, context);
const model = "anthropic/claude-sonnet-4-5";
const agent = new Agent({ model, tools: [refund], sink, ...context });
if (context.pending.length === 0) await agent.prompt("Refund order 7.");
else {
  const calls = context.pending.map(({ toolCall }) => [toolCall.id, { type: "approve" }]);
  const end = await agent.continue({ decisions: Object.fromEntries(calls) });
  console.log(end.text);
}
process.kill(process.pid, "SIGKILL");
