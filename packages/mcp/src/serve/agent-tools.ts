import type { CallToolResult, Tool } from "@modelcontextprotocol/server";
import {
  type AgentTool,
  type AgentToolResult,
  type Middleware,
  type RunInfo,
  type ToolHost,
  type ToolInvocation,
  toResult,
} from "@gyre/agent";
import {
  decodeText,
  describeFile,
  errorMessage,
  fileKind,
  type ToolCall,
  toFile,
  toJsonSchema,
  type UserContent,
  validateToolArguments,
} from "@gyre/ai";
import type { McpOffer, ServeContext, ServedTool } from "./offer.ts";

const CALL_TIMEOUT_MS = 600_000;

/** A tool as a client gets to know it. */
export function describeTool(tool: AgentTool | ServedTool): Tool {
  const { name, description, parameters } = tool;
  const title = "call" in tool ? tool.title : tool.label;
  const annotations =
    "call" in tool
      ? tool.annotations
      : { readOnlyHint: tool.presentation?.effects?.({}).reads === true };
  return {
    name,
    ...(title !== undefined && { title }),
    description,
    inputSchema: { ...toJsonSchema(parameters), type: "object" },
    ...(annotations && { annotations }),
  };
}

/** Calls a tool. What goes wrong becomes a result; only questions to the client pass. */
export async function callTool(
  tool: AgentTool | ServedTool,
  call: ToolCall,
  { middleware = [] }: McpOffer,
  context: ServeContext,
): Promise<CallToolResult> {
  const checked = await validateToolArguments(tool, structuredClone(call.arguments));
  if (!checked.ok) return failed(checked.error);
  if ("call" in tool) {
    const given = await tool.call(checked.value, context);
    return typeof given === "string" ? { content: [{ type: "text", text: given }] } : given;
  }
  let updates = 0;
  const onUpdate = (partial: AgentToolResult): void => {
    const message = textIn(partial);
    void context.progress({ progress: ++updates, ...(message !== "" && { message }) });
  };
  const { signal } = context;
  const first: ToolInvocation = { toolCall: call, tool, args: checked.value, signal, run: RUN };
  try {
    return toCallResult(await invoke(first, middleware, onUpdate));
  } catch (error) {
    return failed(`Tool "${call.name}" failed: ${errorMessage(error)}`);
  }
}

/** The call through middleware and tool. */
function invoke(
  first: ToolInvocation,
  middleware: readonly Middleware[],
  onUpdate: (partial: AgentToolResult) => void,
): Promise<AgentToolResult> {
  const layers = middleware.flatMap((layer) => (layer.tool ? [layer.tool.bind(layer)] : []));
  const run = layers.reduceRight<(now: ToolInvocation) => Promise<AgentToolResult>>(
    (inner, layer) => (now) => layer(now, (changed = now) => inner(changed)),
    (now) => execute(now, onUpdate),
  );
  return run(first);
}

async function execute(
  { tool, args, toolCall, signal }: ToolInvocation,
  onUpdate: (partial: AgentToolResult) => void,
): Promise<AgentToolResult> {
  const limit = AbortSignal.timeout(tool.timeoutMs ?? CALL_TIMEOUT_MS);
  const either = AbortSignal.any([signal, limit]);
  const given = await tool.execute(args, {
    id: toolCall.id,
    signal: either,
    update: onUpdate,
    host: HOST,
    messages: [],
  });
  return toResult(tool.name, given);
}

/** There is no run: the model is the client's. */
const RUN: RunInfo = {
  fallbacks: [],
  sessionId: undefined,
  model: { id: "mcp-client", name: "MCP client", api: "mcp", provider: "mcp" },
};

const HOST: ToolHost = {
  call: (name) =>
    Promise.resolve({
      content: [{ type: "text", text: `Tool "${name}" cannot be called from here.` }],
      isError: true,
    }),
};

function toCallResult({ content, isError }: AgentToolResult): CallToolResult {
  return {
    content: content.map(toMcpBlock),
    ...(isError === true && { isError: true }),
  };
}

function toMcpBlock(block: UserContent): CallToolResult["content"][number] {
  if (block.type === "text") return { type: "text", text: block.text };
  const file = toFile(block);
  const { mediaType: mimeType, name, source } = file;
  const uri = `file:///${encodeURIComponent(name ?? "file")}`;
  if (source.type === "url") {
    return { type: "resource_link", uri: source.url, name: name ?? source.url, mimeType };
  }
  if (source.type !== "base64") {
    return { type: "text", text: `[File that is not here: ${describeFile(file)}]` };
  }
  const { data } = source;
  const kind = fileKind(mimeType);
  if (kind === "image" || kind === "audio") return { type: kind, data, mimeType };
  if (kind !== "text") return { type: "resource", resource: { uri, mimeType, blob: data } };
  return { type: "resource", resource: { uri, mimeType, text: decodeText(data) } };
}

function textIn({ content }: AgentToolResult): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
}

export function failed(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
