export * from "./agent.ts";
export * from "./breakdown.ts";
export { SKIPPED_TEXT } from "./calls.ts";
export {
  applyCompaction,
  type Compaction,
  type CompactionPlan,
  type ContextConfig,
  contextLimits,
  type ContextLimits,
  planCompaction,
  type PlanOptions,
} from "./compaction.ts";
export { ContextOverflowError } from "./context.ts";
export { SinkError } from "./emitter.ts";
export { type CallTrace, type CompactionFacts, traceOf } from "./facts.ts";
export { callsOf, isLlmMessage, withResult } from "./history.ts";
export { type PromptInput, toMessages, userMessage } from "./input.ts";
export * from "./logging.ts";
export {
  agentLoop,
  agentLoopContinue,
  createAgentStream,
  runAgentLoop,
  streamAssistantResponse,
} from "./loop.ts";
export {
  type Approval,
  approval,
  type Middleware,
  type ModelAnswer,
  type ModelInvocation,
  type RunInfo,
  Suspend,
  type ToolInvocation,
} from "./middleware.ts";
export { ANSWER_TOOL, OutputError } from "./output.ts";
export type { QueuedMessage } from "./queue.ts";
export { InvalidTranscriptError } from "./request.ts";
export { type Attempt, isRetryable, type RetryPolicy, withRetry } from "./retry.ts";
export * from "./tracing.ts";
export * from "./types.ts";
