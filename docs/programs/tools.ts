import { Agent, defineTool } from "@gyre/agent";
import { type } from "arktype";
import { Type } from "typebox";
import { z } from "zod";
const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});
const half = defineTool({
  name: "half",
  description: "Halves a number.",
  parameters: Type.Object({ of: Type.Number() }),
  execute: ({ of }) => of / 2,
});
const round = defineTool({
  name: "round",
  description: "Rounds a number.",
  parameters: { type: "object", properties: { of: { type: "number" } }, required: ["of"] },
  execute: ({ of }) => Math.round(of),
});
const spell = defineTool({
  name: "spell",
  description: "Spells a word.",
  parameters: type({ word: "string" }),
  execute: ({ word }) => [...word],
});
const tools = [add, half, round, spell];
const agent = new Agent({ model: "anthropic/claude-sonnet-4-5", tools });
for await (const text of agent.run("Half of 19 + 24?").textStream) process.stdout.write(text);
