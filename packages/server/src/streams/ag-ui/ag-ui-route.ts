import type { Agent, Decision } from "@gyre/agent";
import { isRecord, toRecord, type ToolCall } from "@gyre/ai";
import { fromOpenAiChat } from "@gyre/ai/convert";
import { ApprovalSigner } from "../common/approvals.ts";
import { logError, type OnError } from "../common/failures.ts";
import { readJsonBody, RequestError } from "../common/http.ts";
import { toRoute } from "../common/route.ts";
import { INTERRUPTED, listOpenCalls } from "../common/open-calls.ts";
import { type AgUiResponseOptions, toAgUiResponse } from "./to-ag-ui.ts";

export interface AgUiRouteOptions extends Pick<
  AgUiResponseOptions,
  "heartbeatMs" | "headers" | "clock" | "describeFailure" | "clientTools"
> {
  /** Signs interrupts, so that no client resolves what was not asked. Without it none is accepted. */
  secret?: string;
  /** Called first: a response refuses the request. */
  authorize?: (request: Request) => Response | undefined | Promise<Response | undefined>;
  /**
   * Gets each error of which the client reads the kind alone: why a run failed, and what `createAgent` or `authorize`
   * threw. Default: `console.error`.
   */
  onError?: OnError;
  /** Default 8 MiB. */
  maxBodyBytes?: number;
}

/**
 * An agent for `HttpAgent` of `@ag-ui/client`: `POST` with its input runs the agent on the messages of the client, and
 * `resume` answers interrupts: `{ approved: boolean, reason? }` as payload, or `cancelled`.
 */
export function createAgUiRoute(
  createAgent: (
    request: Request,
    body: Readonly<Record<string, unknown>>,
  ) => Agent | Promise<Agent>,
  given: AgUiRouteOptions = {},
): (request: Request) => Promise<Response> {
  const options = { ...given, onError: given.onError ?? logError };
  const signer = options.secret === undefined ? undefined : new ApprovalSigner(options.secret);
  return toRoute((request) => answer(request, createAgent, options, signer), options.onError);
}

async function answer(
  request: Request,
  createAgent: (
    request: Request,
    body: Readonly<Record<string, unknown>>,
  ) => Agent | Promise<Agent>,
  options: AgUiRouteOptions,
  signer: ApprovalSigner | undefined,
): Promise<Response> {
  if (request.method !== "POST") {
    throw new RequestError(405, "invalid_request", `There is no ${request.method} here: use POST.`);
  }
  const refusal = await options.authorize?.(request);
  if (refusal) return refusal;
  const body = await readJsonBody(request, options.maxBodyBytes);
  const { threadId, runId } = body;
  const given = Array.isArray(body["messages"]) ? body["messages"].filter(isRecord) : [];
  const { messages } = fromOpenAiChat(joinAnswers(given));
  if (typeof threadId !== "string" || typeof runId !== "string" || messages.length === 0) {
    const text = 'The body has "threadId", "runId" and "messages", of which one is of the user.';
    throw new RequestError(400, "invalid_request", text);
  }
  const decisions: Record<string, Decision> = {};
  const answers = Array.isArray(body["resume"]) ? body["resume"].filter(isRecord) : [];
  for (const call of listOpenCalls(messages)) {
    decisions[call.id] = await decide(call, threadId, answers, signer);
  }
  if (messages.at(-1)?.role === "assistant" && Object.keys(decisions).length === 0) {
    throw new RequestError(409, "nothing_to_answer", "The last message is answered already.");
  }
  const agent = await createAgent(request, body);
  agent.replaceMessages(messages);
  const run = agent.continueRun({ decisions });
  return toAgUiResponse(run, {
    ...options,
    threadId,
    runId,
    history: messages,
    agent,
    nameInterrupt: signer
      ? ({ id, name, arguments: input }) => signer.sign({ chat: threadId, id, name, input })
      : undefined,
  });
}

/** The decision on an open call: denied, unless it was asked about and is approved. */
async function decide(
  call: ToolCall,
  chat: string,
  answers: readonly Record<string, unknown>[],
  signer: ApprovalSigner | undefined,
): Promise<Decision> {
  const { id, name, arguments: input } = call;
  const signature = await signer?.sign({ chat, id, name, input });
  const given = answers.find(({ interruptId }) => interruptId === signature);
  if (signature === undefined || !given) return INTERRUPTED;
  const { approved, reason } = toRecord(given["payload"]);
  if (given["status"] === "resolved" && approved === true) return { type: "approve" };
  return { type: "deny", ...(typeof reason === "string" && { reason }) };
}

/** Messages as chat completions have them: adjacent ones of the assistant are one answer, and thoughts stay out. */
function joinAnswers(given: readonly Record<string, unknown>[]): object[] {
  const joined: Record<string, unknown>[] = [];
  for (const { role, content, toolCalls, toolCallId } of given) {
    const last = joined.at(-1);
    const calls: unknown[] = Array.isArray(toolCalls) ? toolCalls : [];
    if (role === "tool") joined.push({ role, content, tool_call_id: toolCallId });
    else if (role === "user") joined.push({ role, content });
    else if (role !== "assistant") continue;
    else if (last?.["role"] === "assistant" && !last["tool_calls"]) {
      last["content"] = `${textOf(last["content"])}${textOf(content)}`;
      if (calls.length > 0) last["tool_calls"] = calls;
    } else joined.push({ role, content, ...(calls.length > 0 && { tool_calls: calls }) });
  }
  return joined;
}

function textOf(content: unknown): string {
  return typeof content === "string" ? content : "";
}
