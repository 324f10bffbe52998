// A program with the coding agent, in a folder where it was installed.
import { readFileSync } from "node:fs";
import { call, scriptedModel } from "@gyre/ai/testing";
import { createCodingAgent } from "@gyre/coding";

const model = scriptedModel([
  call("write", { path: "tea.txt", content: "green\n" }),
  call("grep", { pattern: "gre+n", path: "tea.txt" }),
  "Written.",
]);
const agent = await createCodingAgent({
  model: model.model,
  protocol: model,
  permissions: { mode: "auto-edit" },
});
const end = await agent.prompt("Write it.");
const content = readFileSync("tea.txt", "utf8");
const { files } = await agent.rewind();
await agent.close();
const inside = await import("@gyre/coding/internal/harness/harness").catch(({ code }) => code);
if (inside !== "ERR_PACKAGE_PATH_NOT_EXPORTED")
  throw new Error("There is an entry point too many.");
console.log(`${end.text} ${content.trim()}, ${files.length} file taken back`);
