export * from "./agent.ts";
export { SinkError } from "./emitter.ts";
export { toMessages, userMessage, type PromptInput } from "./input.ts";
export {
  agentLoop,
  agentLoopContinue,
  createAgentStream,
  runAgentLoop,
  streamAssistantResponse,
} from "./loop.ts";
export * from "./middleware.ts";
export { ANSWER_TOOL, OutputError } from "./output.ts";
export type { QueuedMessage } from "./queue.ts";
export { InvalidTranscriptError } from "./response.ts";
export { isRetryable, withRetry, type Attempt, type RetryPolicy } from "./retry.ts";
export { SKIPPED_TEXT } from "./calls.ts";
export * from "./types.ts";
