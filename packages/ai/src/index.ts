export * from "./stream/accumulate.ts";
export * from "./messages/arguments.ts";
export * from "./stream/assistant-stream.ts";
export * from "./client/client.ts";
export * from "./client/generation-options.ts";
export type * from "./client/service-tools.ts";
export { type Clock, systemClock } from "./common/clock.ts";
export { loadPart } from "./common/loading.ts";
export { toUrl } from "./common/to-url.ts";
export * from "./common/errors.ts";
export * from "./common/one-line.ts";
export * from "./common/promises.ts";
export * from "./common/records.ts";
export { EventStream, IncompleteStreamError } from "./stream/event-stream.ts";
export * from "./stream/events.ts";
export * from "./messages/failure.ts";
export { fromBase64, toBase64 } from "./files/base64.ts";
export * from "./files/file-facts.ts";
export * from "./files/files.ts";
export * from "./messages/local-model.ts";
export * from "./files/media-types.ts";
export * from "./messages/messages.ts";
export type { ApiName, KnownModelName, ModelName, ServiceName } from "./messages/names.ts";
export type { ChatQuirks, ModelQuirks } from "./messages/quirks.ts";
export { checkJson, type JsonProblem } from "./schema/check-json.ts";
export * from "./schema/near-names.ts";
export * from "./stream/partial-json.ts";
export * from "./common/redact.ts";
export * from "./client/registry.ts";
export { DEFAULT_MAX_RETRY_DELAY_MS } from "./client/retry-plan.ts";
export {
  type Attempt,
  type RetryOptions,
  type RetryPolicy,
  type RetryReport,
  withRetry,
} from "./client/retry.ts";
export * from "./schema/schema.ts";
export * from "./files/stored-files.ts";
export * from "./messages/text.ts";
export * from "./messages/tokens.ts";
export * from "./messages/transcript.ts";
export * from "./messages/usage.ts";
