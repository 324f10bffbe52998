import type {
  AssistantMessage,
  FileContent,
  ImageContent,
  ServiceToolContent,
  StopReason,
  ToolCall,
} from "../messages/messages.ts";

/**
 * What a model's response is while it streams. `partial` is the live message: the
 * same object in every event, up to date, and frozen in meaning only once `done`
 * or `error` came. Callers that keep it copy it.
 */
export type AssistantMessageEvent =
  | { type: "start"; partial: AssistantMessage }
  | { type: "text_start"; contentIndex: number; partial: AssistantMessage }
  | { type: "text_delta"; contentIndex: number; delta: string; partial: AssistantMessage }
  | { type: "text_end"; contentIndex: number; content: string; partial: AssistantMessage }
  | { type: "thinking_start"; contentIndex: number; partial: AssistantMessage }
  | { type: "thinking_delta"; contentIndex: number; delta: string; partial: AssistantMessage }
  | { type: "thinking_end"; contentIndex: number; content: string; partial: AssistantMessage }
  | { type: "toolcall_start"; contentIndex: number; partial: AssistantMessage }
  | { type: "toolcall_delta"; contentIndex: number; delta: string; partial: AssistantMessage }
  | { type: "toolcall_end"; contentIndex: number; toolCall: ToolCall; partial: AssistantMessage }
  | {
      type: "service_tool";
      contentIndex: number;
      content: ServiceToolContent;
      partial: AssistantMessage;
    }
  | { type: "image"; contentIndex: number; content: ImageContent; partial: AssistantMessage }
  | { type: "file"; contentIndex: number; content: FileContent; partial: AssistantMessage }
  | { type: "done"; reason: DoneReason; message: AssistantMessage }
  | { type: "error"; reason: "error" | "aborted"; error: AssistantMessage };

/** How a response ends that did not fail and was not cut off. */
export type DoneReason = Exclude<StopReason, "error" | "aborted" | "redirected">;

/** The events that carry a piece of a growing block. */
export type DeltaEvent = Extract<AssistantMessageEvent, { delta: string }>;
