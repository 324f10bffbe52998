import type { Readable, Writable } from "node:stream";
import type { CallToolResult, ServerContext } from "@modelcontextprotocol/server";
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
  errorMessage,
  nearNames,
  type ToolCall,
  toJsonSchema,
  validateToolArguments,
} from "@gyre/ai";
import { MAX_MESSAGE_BYTES } from "../process/stdio-transport.ts";

export interface ServeMcpOptions {
  tools: readonly AgentTool[];
  /** Around each call, the first outermost: permissions have to be the last of it. */
  middleware: readonly Middleware[];
  version: string;
  stdin: Readable;
  /** Gets the protocol, and nothing else may write there. */
  stdout: Writable;
  /** Ends it. */
  signal: AbortSignal;
  /** Called with errors of the connection. */
  warn: (text: string) => void;
}

const CALL_TIMEOUT_MS = 600_000;

/**
 * Offers tools to a client of the Model Context Protocol, on standard input and output, until
 * either ends. Calls pass the same validation and middleware as those of an agent; one that
 * middleware leaves pending for a person is refused.
 */
export async function serveMcp(options: ServeMcpOptions): Promise<void> {
  const { stdin, stdout, signal, version, warn } = options;
  const [{ Server }, { serveStdio, StdioServerTransport }] = await Promise.all([
    import("@modelcontextprotocol/server"),
    import("@modelcontextprotocol/server/stdio"),
  ]);
  let calls = 0;
  const transport = new StdioServerTransport(stdin, stdout, { maxBufferSize: MAX_MESSAGE_BYTES });
  const handle = serveStdio(
    () => {
      const server = new Server({ name: "gyre", version }, { capabilities: { tools: {} } });
      server.setRequestHandler("tools/list", () => ({ tools: options.tools.map(listTool) }));
      server.setRequestHandler("tools/call", ({ params }, context) => {
        const call: ToolCall = {
          type: "toolCall",
          id: `mcp-${++calls}`,
          name: params.name,
          arguments: params.arguments ?? {},
        };
        return called(options, call, context);
      });
      return server;
    },
    { transport, onerror: (error) => warn(error.message) },
  );
  await new Promise<void>((settle) => {
    stdin.once("end", settle);
    stdin.once("close", settle);
    stdout.once("close", settle);
    signal.addEventListener("abort", () => settle(), { once: true });
    if (signal.aborted) settle();
  });
  await handle.close();
}

function listTool({ name, label, description, parameters, presentation }: AgentTool): {
  name: string;
  title?: string;
  description: string;
  inputSchema: { type: "object" };
  annotations: { readOnlyHint: boolean };
} {
  return {
    name,
    ...(label !== undefined && { title: label }),
    description,
    inputSchema: { ...toJsonSchema(parameters), type: "object" },
    annotations: { readOnlyHint: presentation?.effects?.({}).reads === true },
  };
}

async function called(
  options: ServeMcpOptions,
  call: ToolCall,
  context: ServerContext,
): Promise<CallToolResult> {
  const { signal, _meta, notify } = context.mcpReq;
  const token = _meta?.progressToken;
  let updates = 0;
  const onUpdate = (partial: AgentToolResult): void => {
    if (token === undefined) return;
    const message = textIn(partial);
    void notify({
      method: "notifications/progress",
      params: { progressToken: token, progress: ++updates, ...(message !== "" && { message }) },
    }).catch((error: unknown) => options.warn(errorMessage(error)));
  };
  try {
    return toCallResult(await invoked(options, call, signal, onUpdate));
  } catch (error) {
    return toCallResult(failed(`Tool "${call.name}" failed: ${errorMessage(error)}`));
  }
}

/** The call through middleware and tool. */
async function invoked(
  { tools, middleware }: ServeMcpOptions,
  call: ToolCall,
  signal: AbortSignal,
  onUpdate: (partial: AgentToolResult) => void,
): Promise<AgentToolResult> {
  const tool = tools.find(({ name }) => name === call.name);
  if (!tool) {
    const near = nearNames(
      call.name,
      tools.map(({ name }) => name),
    );
    return failed(
      `There is no tool "${call.name}".${near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : ""}`,
    );
  }
  const checked = await validateToolArguments(tool, structuredClone(call.arguments));
  if (!checked.ok) return failed(checked.error);
  const first: ToolInvocation = { toolCall: call, tool, args: checked.value, signal, run: RUN };
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
  call: (name) => Promise.resolve(failed(`Tool "${name}" cannot be called from here.`)),
};

function toCallResult({ content, isError }: AgentToolResult): CallToolResult {
  return {
    content: content.map((block) =>
      block.type === "image"
        ? { type: "image", data: block.data, mimeType: block.mimeType }
        : { type: "text", text: block.text },
    ),
    ...(isError === true && { isError: true }),
  };
}

function textIn({ content }: AgentToolResult): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
}

function failed(text: string): AgentToolResult {
  return { content: [{ type: "text", text }], isError: true };
}
