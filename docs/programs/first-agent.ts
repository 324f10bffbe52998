import { Agent } from "@gyre/agent";
const agent = new Agent({ model: "anthropic/claude-sonnet-4-5" });
const end = await agent.prompt("What is 19 + 23?");
console.log(end.text);
