// Tools that run together, report progress, fail, and call each other.
import { Agent, type AgentTool, defineTool } from "@gyre/agent";
import { call, callAll, scriptedModel } from "@gyre/ai/testing";

const prices: Readonly<Record<string, number>> = { tea: 3, cake: 5 };

/** Adjacent calls of it run together: it says `concurrent`. */
const price = defineTool({
  name: "price",
  description: "The price of a thing.",
  parameters: { type: "object", properties: { of: { type: "string" } }, required: ["of"] },
  concurrent: true,
  execute({ of }) {
    const found = prices[of];
    // What a tool throws, the model reads.
    if (found === undefined) throw new Error(`${of} is not on the card.`);
    return String(found);
  },
});

/** Asks another tool, and reports progress. */
const bill = defineTool({
  name: "bill",
  description: "Adds up the prices of several things.",
  parameters: {
    type: "object",
    properties: { things: { type: "array", items: { type: "string" } } },
    required: ["things"],
  },
  async execute({ things }, { signal, update: onUpdate, host }) {
    let sum = 0;
    for (const of of things) {
      signal.throwIfAborted();
      const { content } = await host.call("price", { of });
      const [first] = content;
      if (first?.type === "text") sum += Number(first.text);
      onUpdate({ content: [{ type: "text", text: `${of}: ${sum} so far` }] });
    }
    return String(sum);
  },
});

const tools: AgentTool[] = [price, bill];
const model = scriptedModel([
  callAll([
    ["price", { of: "tea" }],
    ["price", { of: "beer" }],
  ]),
  call("bill", { things: ["tea", "cake"] }),
  "Tea and cake are 8.",
]);
const agent = new Agent({ protocol: model, model: model.model, tools });
agent.subscribe((event) => {
  if (event.type === "tool_execution_start") console.log(`> ${event.toolName}`, event.args);
  if (event.type === "tool_execution_update") console.log("  ...", event.partialResult.content);
  if (event.type === "tool_execution_end") {
    console.log(event.isError ? "  failed:" : "  gave:", event.result.content);
  }
});
await agent.prompt("What do tea and beer cost? And tea with cake?");
model.assertComplete();
