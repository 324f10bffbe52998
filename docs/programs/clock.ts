import { Agent, defineTool } from "@gyre/agent";
import { call, manualClock, scriptedModel } from "@gyre/ai/testing";
const ask = defineTool({
  name: "ask",
  description: "Asks a service that does not answer.",
  parameters: { type: "object", properties: {} },
  timeoutMs: 600_000,
  execute: () => new Promise<string>(() => {}),
});
const clock = manualClock();
const protocol = scriptedModel([call("ask"), "It does not answer."]);
const agent = new Agent({ model: protocol.model, protocol, tools: [ask], clock });
const run = agent.prompt("Ask it.");
await clock.advance(610_000);
console.log((await run).text, clock.now());
