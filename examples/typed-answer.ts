// An answer with a type: the schema is checked, and the model is asked again until it fits.
import { Agent } from "@gyre/agent";
import { call, scriptedModel } from "@gyre/ai/testing";
import { z } from "zod";

const person = z.object({ name: z.string(), born: z.number().int() });

const model = scriptedModel([
  call("final_answer", { name: "Ada Lovelace", born: "in winter" }),
  call("final_answer", { name: "Ada Lovelace", born: "1815" }),
]);
const agent = new Agent({ protocol: model, model: model.model });
const run = agent.run("Who wrote the first program, and when was she born?", { output: person });
for await (const event of run) {
  if (event.type === "tool_execution_end") console.log(event.result.content);
}
const { name, born } = await run.output();
console.log(`${name} was ${1843 - born} when it was printed.`);
