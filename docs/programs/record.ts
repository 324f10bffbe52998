import { existsSync } from "node:fs";
import { Agent } from "@gyre/agent";
import { createModelClient, recordToFile, replayFile } from "@gyre/ai/node";
const path = "tea.jsonl";
const isRecorded = existsSync(path);
const protocol = isRecorded ? replayFile(path) : recordToFile(createModelClient(), path);
const agent = new Agent({ model: "anthropic/claude-sonnet-4-5", protocol });
const end = await agent.prompt(process.argv[2] ?? "Which tea?");
console.log(end.finalMessage?.errorMessage ?? end.text);
