// What runs where the modules of Node are: the tour, and the first lines of the guide.
import { Agent } from "@gyre/agent";
import { tour } from "./tour.mjs";

const stops = await tour();
const agent = new Agent({ model: "anthropic/claude-sonnet-4-5" });
const { text } = await agent.prompt("Say good day.");
let streamed = "";
for await (const part of agent.run("Again.").textStream) streamed += part;
console.log(JSON.stringify({ stops, text, streamed }));
