import type { AgentTool, AgentToolResult } from "@gyre/agent";
import type {
  AssistantContent,
  AssistantMessage,
  ImageContent,
  Message,
  Model,
  ToolResultMessage,
  UserContent,
  UserMessage,
} from "@gyre/ai";
import type { RequestImage } from "./parts.ts";
import { isRecord, string } from "./parts.ts";
import type {
  ModelRequest,
  RequestCall,
  RequestResult,
  RequestText,
  RequestThinking,
  RequestTurn,
} from "./request-transcript.ts";

/** A request in our words: what was text before, and what the user says now, if anything. */
export interface RestoredTranscript {
  messages: Message[];
  prompt?: UserMessage;
}

/** Turns as a transcript of ours, as if `model` had written what the assistant says. */
export function restoreTranscript({ turns }: ModelRequest, model: Model): RestoredTranscript {
  const messages: Message[] = [];
  let calls: (RequestCall & { answered?: boolean })[] = [];
  let made = 0;
  for (const turn of turns) {
    if (turn.role === "assistant") {
      // Some formats have no ids; ours are by place.
      calls = turn.calls.map((call) => ({ ...call, id: call.id || `restored_${++made}` }));
      messages.push(assistantMessage(turn, calls, model));
      continue;
    }
    for (const result of turn.results) {
      const call = calls.find(
        ({ answered, id, name }) =>
          !answered && (result.id ? id === result.id : name === (result.name ?? name)),
      );
      if (call) call.answered = true;
      messages.push(resultMessage(result, call));
    }
    const content = userContent(turn);
    if (content.length > 0) messages.push({ role: "user", content, timestamp: 0 });
  }
  const last = messages.at(-1);
  return last?.role === "user" ? { messages: messages.slice(0, -1), prompt: last } : { messages };
}

/** What a user says in a turn, beside the results of tools. */
export function userContent({ images, texts }: RequestTurn): UserContent[] {
  return [
    ...texts.map(({ text }): UserContent => ({ type: "text", text })),
    ...images.map(imageContent),
  ];
}

function imageContent({ data, mimeType }: RequestImage): ImageContent {
  return { type: "image", data, mimeType };
}

function assistantMessage(
  { service, texts, thinking }: RequestTurn,
  calls: readonly RequestCall[],
  { api, id, provider }: Model,
): AssistantMessage {
  const content: AssistantContent[] = [
    ...thinking.map((thought): AssistantContent => ({
      type: "thinking",
      thinking: thought.text,
      ...signature(thought),
      ...(thought.redacted && { redacted: true }),
    })),
    ...service.map((raw): AssistantContent => ({
      type: "serviceTool",
      id: string(raw["id"] ?? raw["tool_use_id"]),
      name: string(raw["name"] ?? raw["type"]),
      raw,
    })),
    ...texts.map((part): AssistantContent => ({
      type: "text",
      text: part.text,
      ...signature(part),
    })),
    ...calls.map((call): AssistantContent => ({
      type: "toolCall",
      id: call.id,
      name: call.name,
      arguments: isRecord(call.arguments) ? call.arguments : {},
      ...signature(call),
    })),
  ];
  const stopReason = calls.length > 0 ? "toolUse" : "stop";
  return {
    role: "assistant",
    content,
    api,
    provider,
    model: id,
    usage: {},
    stopReason,
    timestamp: 0,
  };
}

function signature({ raw, seal }: Pick<RequestThinking, "raw"> & Pick<RequestText, "seal">): {
  signature?: string;
} {
  if (raw !== undefined) return { signature: JSON.stringify(raw) };
  return seal === undefined ? {} : { signature: seal };
}

function resultMessage(result: RequestResult, call: RequestCall | undefined): ToolResultMessage {
  return {
    role: "toolResult",
    toolCallId: call?.id ?? result.id,
    toolName: call?.name ?? result.name ?? "",
    content: resultContent(result),
    isError: result.isError,
    timestamp: 0,
  };
}

function resultContent({ images, text }: RequestResult): UserContent[] {
  return [{ type: "text", text }, ...images.map(imageContent)];
}

/** What a tool answers when nothing was recorded that it could answer. */
export const NOT_RECORDED = "(The recording ends here.)";

/** The tools of a request; each answers what `next` says was answered to the call. */
export function recordedTools(
  { tools }: ModelRequest,
  next: (id: string, name: string) => RequestResult | undefined,
): AgentTool[] {
  return tools.map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
    execute(_args, { id }): AgentToolResult {
      const result = next(id, name);
      if (!result) return { content: [{ type: "text", text: NOT_RECORDED }] };
      return { content: resultContent(result), isError: result.isError };
    },
  }));
}
