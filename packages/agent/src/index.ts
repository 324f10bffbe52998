export * from "./agent/agent.ts";
export * from "./agent/agent-run.ts";
export * from "./agent/answer.ts";
export {
  type AgentListener,
  type AgentOptions,
  type AgentState,
  type CompactOptions,
  type ContinueOptions,
  DEFAULT_LISTENER_TIMEOUT_MS,
  DEFAULT_MAX_TURNS,
  type PromptOptions,
  type RunOptions,
  type RunOverrides,
} from "./agent/options.ts";
export * from "./generate.ts";
export { EventState, type EventView, keepIdentity } from "./agent/state.ts";
export type {
  AgentAsTool,
  AgentToolDetails,
  AgentToolOptions,
  AgentToolProgress,
  PromptSchema,
} from "./agent/as-tool.ts";
export type { Handoff } from "./agent/handoff.ts";
export { explainEnd, lastText } from "./agent/outcome.ts";
export * from "./context/breakdown.ts";
export { SKIPPED_TEXT } from "./loop/tool-calls.ts";
export { toResult } from "./loop/tool-execution.ts";
export {
  applyCompaction,
  type CompactionPlan,
  contextLimits,
  type ContextLimits,
  planCompaction,
  type PlanOptions,
} from "./context/compaction.ts";
export { ContextOverflowError } from "./context/compactor.ts";
export { maxResultTokens } from "./context/long-results.ts";
export * from "./context/summarize-with.ts";
export { readDecisions } from "./contract/decisions.ts";
export { SinkError } from "./run/emitter.ts";
export { DEFAULT_FALLBACK_ON } from "./run/fallbacks.ts";
export type { AgentEventOf, DecisionOf, PendingCallOf } from "./contract/by-tool.ts";
export * from "./contract/compaction.ts";
export { defaultConvertToLlm, listCalls, isLlmMessage, withResult } from "./transcript/history.ts";
export {
  type MessageInput,
  type PromptInput,
  toMessages,
  userMessage,
} from "./transcript/input.ts";
export * from "./observe/logging.ts";
export * from "./observe/metrics.ts";
export {
  agentLoop,
  agentLoopContinue,
  createAgentStream,
  runAgentLoop,
  streamAssistantResponse,
} from "./loop/loop.ts";
export {
  type Approval,
  approval,
  compose,
  DeniedError,
  type Middleware,
  type ModelAnswer,
  type ModelInvocation,
  type RunInfo,
  Suspend,
  type SuspendQuestion,
  type ToolInvocation,
  type ToolInvocationOf,
  type WithheldCall,
} from "./contract/middleware.ts";
export * from "./contract/presentation.ts";
export { ANSWER_TOOL, OutputError, readAnswer } from "./agent/output.ts";
export type { QueueChange, QueuedMessage, QueuedMessages } from "./agent/queue.ts";
export { InvalidTranscriptError } from "./loop/request.ts";
export { type Attempt, type RetryOptions, type RetryPolicy, withRetry } from "@gyre/ai";
export * from "./observe/tracing.ts";
export * from "./contract/types.ts";
export { markSources } from "./transcript/sources.ts";
export { readToolError, readToolOutput } from "./transcript/tool-output.ts";
