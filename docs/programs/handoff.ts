import { Agent } from "@gyre/agent";
const model = "anthropic/claude-sonnet-4-5";
const refunds = { name: "refunds", description: "Refunds orders.", instructions: "Refund it." };
const agent = new Agent({ model, instructions: "Find out what is wanted.", handoffs: [refunds] });
for (const prompt of ["I want my money back.", "When do I get it?"]) {
  console.log((await agent.prompt(prompt)).text, agent.activeAgent);
}
