import { createCodingAgent } from "@gyre/coding";
const agent = await createCodingAgent({
  model: "anthropic/claude-sonnet-4-5",
  permissions: { mode: "auto-edit" },
});
console.log((await agent.prompt("Write a haiku about tea into tea.txt.")).text);
await agent.rewind();
await agent.close();
