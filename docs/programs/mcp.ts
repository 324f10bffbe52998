import { Agent } from "@gyre/agent";
import { openMcp } from "@gyre/mcp";
const config = { command: process.execPath, args: [process.env["MCP_SERVER"] ?? ""], direct: true };
const mcp = await openMcp({
  servers: [{ name: "tea", scope: "user", config }],
  cwd: process.cwd(),
  warn: console.error,
});
const agent = new Agent({
  model: "anthropic/claude-sonnet-4-5",
  middleware: [mcp.middleware],
  tools: [...mcp.tools],
});
console.log((await agent.prompt("Which teas are there?")).text);
await mcp.close();
