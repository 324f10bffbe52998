// A first agent: one tool, one question.
import { Agent, defineTool } from "@gyre/agent";
import { call, scriptedModel } from "@gyre/ai/testing";
import { z } from "zod";

const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});
// With model: "anthropic/claude-sonnet-4-5", a key and no protocol, a real model answers.
const script = scriptedModel([call("add", { a: 19, b: 23 }), "It is 42."]);
const agent = new Agent({ model: script.model, protocol: script, tools: [add] });
agent.subscribe((event) => {
  if (event.type === "tool_execution_end") console.log(event.toolName, event.result.content);
});
const end = await agent.prompt("What is 19 + 23?");
console.log(end.stop, end.text);
