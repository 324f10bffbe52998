export * from "./server/idempotency-cache.ts";
export * from "./messages/wire-message-reader.ts";
export * from "./transports/base/authorize.ts";
export * from "./client/backoff.ts";
export { connectUrl, type ConnectUrlOptions } from "./client/connect-url.ts";
export * from "./server/connection.ts";
export * from "./server/identity.ts";
export {
  decode,
  encode,
  type Envelope,
  negotiate,
  type Payload,
  PROTOCOL_VERSION,
  PROTOCOL_VERSIONS,
  toEnvelope,
  measureUtf8,
  versionMismatchError,
} from "./frames/envelope.ts";
export * from "./messages/event-log.ts";
export * from "./frames/join-frames.ts";
export * from "./frames/limits.ts";
export { type ModelFacts, type ModelFilter } from "./models/model-facts.ts";
export * from "./models/models-service.ts";
export {
  ERROR_CODES,
  type ErrorCode,
  invalidRequest,
  isErrorCode,
  ProtocolError,
  stoppingError,
} from "./frames/protocol-error.ts";
export * from "./messages/message-checks.ts";
export * from "./frames/payload-fields.ts";
export { withoutUndefined } from "./frames/plain-data.ts";
export * from "./models/remote-client.ts";
export * from "./frames/sequence.ts";
export * from "./server/service.ts";
export * from "./transports/base/transport.ts";
export * from "./client/wire-client.ts";
export * from "./client/client-api.ts";
