// A server of the Model Context Protocol that knows its newest revision alone.
import { Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const inputSchema = { type: "object", properties: { name: { type: "string" } } };

serveStdio(
  () => {
    const server = new Server({ name: "modern", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({ tools: [{ name: "greet", inputSchema }] }));
    server.setRequestHandler("tools/call", ({ params }) => ({
      content: [{ type: "text", text: `Hello, ${String(params.arguments?.name)}.` }],
    }));
    return server;
  },
  { legacy: "reject" },
);
