// A person decides before a tool runs; the agent may be gone in the meantime.
import { Agent, defineTool, type AgentOptions } from "@gyre/agent";
import { callAll, scriptedModel } from "@gyre/ai/testing";

const remove = defineTool({
  name: "remove",
  description: "Removes a file.",
  parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  needsApproval: true,
  execute: ({ path }) => `${path} is removed.`,
});
const model = scriptedModel([
  callAll([
    ["remove", { path: "old.txt" }],
    ["remove", { path: "thesis.txt" }],
  ]),
  "I removed old.txt and left thesis.txt alone.",
]);
const options: AgentOptions = { model: model.model, protocol: model, tools: [remove] };

const first = new Agent(options);
const asked = await first.prompt("Remove old.txt and thesis.txt.");
console.log(asked.stop);
for (const { toolCall, reason } of asked.pending) {
  console.log(`${toolCall.id}: ${reason}`, toolCall.arguments);
}

// What was said and what waits is plain data: it can be kept and resumed elsewhere.
const kept = JSON.stringify({ messages: first.state.messages, pending: first.state.pending });

const second = new Agent({ ...options, ...JSON.parse(kept) });
const end = await second.continue({
  decisions: { call_1: { type: "approve" }, call_2: { type: "deny", reason: "I need that one." } },
});
for (const message of end.messages) {
  if (message.role === "toolResult") console.log(message.toolCallId, message.content);
}
console.log(end.stop, end.text);
