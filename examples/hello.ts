// A first agent: one tool, one question.
import { Agent, defineTool } from "@gyre/agent";
import { call, scriptedModel } from "@gyre/ai/testing";

const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  execute: ({ a, b }) => String(a + b),
});
const model = scriptedModel([call("add", { a: 19, b: 23 }), "It is 42."]);
const agent = new Agent({ protocol: model, model: model.model, tools: [add] });
agent.subscribe((event) => {
  if (event.type === "tool_execution_end") console.log(event.toolName, event.result.content);
});
const end = await agent.prompt("What is 19 + 23?");
console.log(end.stop, end.finalMessage?.content);
