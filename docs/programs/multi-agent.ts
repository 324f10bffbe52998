import { Agent } from "@gyre/agent";
const model = "anthropic/claude-sonnet-4-5";
const expert = new Agent({ model, instructions: "Answer in a sentence." });
const research = expert.asTool({ name: "research", description: "Finds out one fact." });
const lead = new Agent({ model, tools: [research], limits: { maxCostUsd: 0.05 } });
const signal = AbortSignal.timeout(60_000);
const { stop, text, usage } = await lead.prompt("Compare three teas.", { signal });
console.log(stop, text, usage.totalTokens);
