import { existsSync } from "node:fs";
import { Agent, defineTool } from "@gyre/agent";
import { createJournal, createSession, openSession } from "@gyre/sessions";
const step = defineTool({
  name: "step",
  description: "Does the next step.",
  parameters: { type: "object", properties: { nth: { type: "number" } }, required: ["nth"] },
  execute: ({ nth }) => (process.argv[2] === "kill" && nth === 2 ? kill() : `Step ${nth} is done.`),
});
const kill = () => process.kill(process.pid, "SIGKILL") && "gone";
const isNew = !existsSync("run.jsonl");
const session = await (isNew ? createSession("run.jsonl", { cwd: "." }) : openSession("run.jsonl"));
const context = await session.context();
const journal = createJournal(session, context);
const agent = new Agent({
  model: "anthropic/claude-sonnet-4-5",
  tools: [step],
  sink: journal,
  middleware: [journal.middleware],
  ...context,
});
const end = await (isNew ? agent.prompt("Do all steps.") : agent.continue());
console.log(end.stop, end.text);
