import { Agent } from "@gyre/agent";
const model = "anthropic/claude-sonnet-4-5";
const poet = new Agent({ model }).asTool({ name: "poet", description: "Writes a poem." });
const end = await new Agent({ model, tools: [poet] }).prompt("A poem on tea, please.");
console.log(end.text);
