import { type Agent, type AgentTool, defineTool } from "@gyre/agent";
import { isRecord, toRecord } from "@gyre/ai";
import { fromOpenAiChat } from "@gyre/ai/convert";
import { logError, type OnError } from "../common/failures.ts";
import { readJsonBody, RequestError } from "../common/http.ts";
import { toRoute } from "../common/route.ts";
import { INTERRUPTED, listOpenCalls } from "../common/open-calls.ts";
import { type OpenAIChatOptions, toOpenAIChat } from "./to-openai-chat.ts";

export interface OpenAIRouteOptions extends Pick<
  OpenAIChatOptions,
  "heartbeatMs" | "headers" | "clock" | "describeFailure"
> {
  /** Called first: a response refuses the request. */
  authorize?: (request: Request) => Response | undefined | Promise<Response | undefined>;
  /** Whether system messages of the client follow the agent's instructions. Default: they are left out. */
  acceptsSystem?: boolean;
  /**
   * Gets each error of which the client reads the kind alone: why a run failed, and what `createAgent` or `authorize`
   * threw. Default: `console.error`.
   */
  onError?: OnError;
  /** Default 8 MiB. */
  maxBodyBytes?: number;
}

/**
 * An agent as `POST …/chat/completions`, for clients that speak OpenAI's chat completions. Tools of the agent run
 * here, and the client does not see their calls; those of `tools` of the request are the client's own.
 */
export function createOpenAIRoute(
  createAgent: (
    request: Request,
    body: Readonly<Record<string, unknown>>,
  ) => Agent | Promise<Agent>,
  given: OpenAIRouteOptions = {},
): (request: Request) => Promise<Response> {
  const options = { ...given, onError: given.onError ?? logError };
  return toRoute((request) => answer(request, createAgent, options), options.onError);
}

async function answer(
  request: Request,
  createAgent: (
    request: Request,
    body: Readonly<Record<string, unknown>>,
  ) => Agent | Promise<Agent>,
  options: OpenAIRouteOptions,
): Promise<Response> {
  if (request.method !== "POST") {
    throw new RequestError(405, "invalid_request", `There is no ${request.method} here: use POST.`);
  }
  const refusal = await options.authorize?.(request);
  if (refusal) return refusal;
  const body = await readJsonBody(request, options.maxBodyBytes);
  const given = Array.isArray(body["messages"]) ? body["messages"].filter(isRecord) : [];
  const { messages, systemPrompt } = fromOpenAiChat(given);
  if (messages.length === 0 || messages.at(-1)?.role === "assistant") {
    const text = 'The body has "messages", of which the last is of the user or of a tool.';
    throw new RequestError(400, "invalid_request", text);
  }
  const agent = await createAgent(request, body);
  const { tools, systemPrompt: own } = agent.state;
  const taken = new Set(tools.map(({ name }) => name));
  const clientTools = readTools(body["tools"]).filter(({ name }) => !taken.has(name));
  if (clientTools.length > 0) agent.setTools([...tools, ...clientTools]);
  if (options.acceptsSystem && systemPrompt !== undefined) {
    agent.setSystemPrompt([own, systemPrompt].filter(Boolean).join("\n\n"));
  }
  agent.replaceMessages(messages);
  const open = listOpenCalls(messages).map(({ id }) => [id, INTERRUPTED] as const);
  const run = agent.continueRun({ decisions: Object.fromEntries(open) });
  return toOpenAIChat(run, {
    ...options,
    agent,
    ...(typeof body["model"] === "string" && { model: body["model"] }),
    stream: body["stream"] === true,
    includeUsage: toRecord(body["stream_options"])["include_usage"] === true,
    clientTools: clientTools.map(({ name }) => name),
  });
}

/** The tools of the client: a call of one suspends the run, and the client has to answer it. */
function readTools(given: unknown): AgentTool[] {
  const list: unknown[] = Array.isArray(given) ? given : [];
  return list.flatMap((one) => {
    const { name, description, parameters } = toRecord(toRecord(one)["function"]);
    if (typeof name !== "string") return [];
    try {
      return [
        defineTool({
          name,
          description: typeof description === "string" ? description : "",
          parameters: { type: "object", ...toRecord(parameters) },
          needsApproval: true,
          execute: () => "It runs at the client.",
        }),
      ];
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      throw new RequestError(400, "invalid_request", text);
    }
  });
}
