// A program with the coding agent, in a folder where it was installed.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, scriptedModel } from "@gyre/ai/testing";
import { createCodingAgent } from "@gyre/coding";

mkdirSync("work");
writeFileSync(
  "tea-server.mjs",
  `import { defineTool } from "@gyre/agent";
import { serveMcp } from "@gyre/mcp";
const brew = defineTool({ name: "brew", description: "Brews tea.", parameters: { type: "object" }, execute: () => "Brewed." });
const { stdin, stdout } = process;
const { signal } = new AbortController();
await serveMcp({ tools: [brew], middleware: [], version: "1", stdin, stdout, signal, warn: console.error });
`,
);
const model = scriptedModel([
  call("mcp_call", { tool: "mcp__tea__brew", arguments: {} }),
  call("write", { path: "tea.txt", content: "green\n" }),
  call("grep", { pattern: "gre+n", path: "tea.txt" }),
  "Written.",
]);
const agent = await createCodingAgent({
  // Not the home folder, where the agent keeps its own files.
  cwd: "work",
  model: model.model,
  protocol: model,
  permissions: { mode: "auto-edit", allow: ["mcp__tea__*"] },
  mcp: { tea: { command: process.execPath, args: [join(process.cwd(), "tea-server.mjs")] } },
});
const end = await agent.prompt("Write it.");
const brewed = JSON.stringify(agent.state.messages).includes("Brewed.");
if (!brewed) throw new Error("The tool of the MCP server was not called.");
const content = readFileSync("work/tea.txt", "utf8");
const { files } = await agent.rewind();
await agent.close();
const inside = await import("@gyre/coding/internal/harness/harness").catch(({ code }) => code);
if (inside !== "ERR_PACKAGE_PATH_NOT_EXPORTED")
  throw new Error("There is an entry point too many.");
console.log(`${end.text} ${content.trim()}, ${files.length} file taken back`);
