import { Agent } from "@gyre/agent";
import { z } from "zod";
const agent = new Agent({ model: "anthropic/claude-sonnet-4-5" });
const output = z.object({ name: z.string(), steps: z.array(z.string()).min(2) });
const end = await agent.prompt("A recipe for an egg.", { output });
console.log(end.output.name, end.output.steps.length);
