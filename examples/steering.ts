// Messages typed while the agent works: one interrupts, one waits.
import { Agent, defineTool } from "@gyre/agent";
import { callAll, scriptedModel } from "@gyre/ai/testing";

const visit = defineTool({
  name: "visit",
  description: "Visits a page.",
  parameters: { type: "object", properties: { page: { type: "number" } }, required: ["page"] },
  execute({ page }) {
    // The user changes their mind while the first page is being read.
    if (page === 1) agent.steer("Stop reading, show me what you have.");
    return `page ${page}`;
  },
});
const model = scriptedModel([
  callAll([
    ["visit", { page: 1 }],
    ["visit", { page: 2 }],
    ["visit", { page: 3 }],
  ]),
  "I have read page 1.",
  "Good bye.",
]);
const agent = new Agent({ protocol: model, model: model.model, tools: [visit] });
agent.followUp("Then say good bye.");
await agent.prompt("Read the pages 1 to 3.");

for (const message of agent.state.messages) {
  if (message.role === "toolResult") console.log("result   ", message.content);
  else if (message.role === "user") console.log("user     ", message.content);
  else if (message.role === "assistant") {
    for (const block of message.content) console.log("assistant", shown(block));
  }
}

function shown(block: { type: string; text?: string; name?: string }): string {
  return block.text ?? `(calls ${block.name})`;
}
