/** Messages of other libraries as messages for this one, and back. What is lost is named. */
export * from "./anthropic.ts";
export {
  type AiModelMessage,
  fromModelMessages,
  type JsonData,
  type ModelFilePart,
  type ModelReasoningPart,
  type ModelTextPart,
  type ModelToolCallPart,
  type ModelToolResultPart,
  type ProviderOptions,
  toModelMessages,
} from "./model-messages.ts";
export * from "./openai-chat.ts";
export * from "./openai-responses.ts";
export * from "./pi.ts";
export type { Exported, ExportOptions, Imported, ImportOptions } from "./shared.ts";
export * from "./ui-messages.ts";
