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
import type { ToldImage } from "./parts.ts";
import { isRecord, string } from "./parts.ts";
import type {
  Told,
  ToldCall,
  ToldResult,
  ToldText,
  ToldThinking,
  ToldTurn,
} from "./request-transcript.ts";

/** A request in our words: what was said before, and what the user says now, if anything. */
export interface Retold {
  messages: Message[];
  prompt?: UserMessage;
}

/** Turns as a transcript of ours, as if `model` had written what the assistant says. */
export function retold({ turns }: Told, model: Model): Retold {
  const messages: Message[] = [];
  let calls: (ToldCall & { answered?: boolean })[] = [];
  let made = 0;
  for (const turn of turns) {
    if (turn.role === "assistant") {
      // Some formats have no ids; ours are by place.
      calls = turn.calls.map((call) => ({ ...call, id: call.id || `told_${++made}` }));
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
export function userContent({ images, texts }: ToldTurn): UserContent[] {
  return [
    ...texts.map(({ text }): UserContent => ({ type: "text", text })),
    ...images.map(imageContent),
  ];
}

function imageContent({ data, mimeType }: ToldImage): ImageContent {
  return { type: "image", data, mimeType };
}

function assistantMessage(
  { service, texts, thinking }: ToldTurn,
  calls: readonly ToldCall[],
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
    ...texts.map((said): AssistantContent => ({
      type: "text",
      text: said.text,
      ...signature(said),
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

function signature({ raw, seal }: Pick<ToldThinking, "raw"> & Pick<ToldText, "seal">): {
  signature?: string;
} {
  if (raw !== undefined) return { signature: JSON.stringify(raw) };
  return seal === undefined ? {} : { signature: seal };
}

function resultMessage(result: ToldResult, call: ToldCall | undefined): ToolResultMessage {
  return {
    role: "toolResult",
    toolCallId: call?.id ?? result.id,
    toolName: call?.name ?? result.name ?? "",
    content: resultContent(result),
    isError: result.isError,
    timestamp: 0,
  };
}

function resultContent({ images, text }: ToldResult): UserContent[] {
  return [{ type: "text", text }, ...images.map(imageContent)];
}

/** What a tool answers when nothing was recorded that it could answer. */
export const NOT_RECORDED = "(The recording ends here.)";

/** The tools of a request; each answers what `next` says was answered to the call. */
export function recordedTools(
  { tools }: Told,
  next: (id: string, name: string) => ToldResult | undefined,
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
