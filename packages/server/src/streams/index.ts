export * from "./common/approvals.ts";
export * from "./ui/chat-route.ts";
export type { StoredChat } from "./ui/chat-start.ts";
export type { DescribeFailure, OnError, PageFailure } from "./common/failures.ts";
export {
  type CorsOptions,
  DEFAULT_MAX_BODY_BYTES,
  readJsonBody,
  RequestError,
  toErrorResponse,
  withCors,
} from "./common/http.ts";
export { DEFAULT_HEARTBEAT_MS, type SseOptions } from "./common/sse.ts";
export * from "./ui/ui-chunks.ts";
export type { UIMessage, UIMessagePart, UIToolPart, UIToolState } from "./ui/ui-message-builder.ts";
export {
  type RunEvents,
  toUIMessageStream,
  toUIMessageStreamResponse,
  type UIResponseOptions,
  type UIStreamOptions,
} from "./ui/ui-message-stream.ts";
export {
  fromUIMessages,
  toUIMessages,
  type UIConversation,
  type UIMessagesOptions,
  type UIQuestion,
} from "./ui/ui-messages.ts";
export type { UIWriterOptions } from "./ui/ui-writer.ts";
export * from "./ag-ui/ag-ui-route.ts";
export * from "./ag-ui/to-ag-ui.ts";
export { RunLog, type RunLogOptions } from "./events/run-log.ts";
export * from "./events/to-response.ts";
export * from "./openai/openai-route.ts";
export * from "./openai/to-openai-chat.ts";
