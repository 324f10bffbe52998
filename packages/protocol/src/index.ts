export * from "./answer-memory.ts";
export * from "./assistant-wire.ts";
export * from "./authorise.ts";
export * from "./backoff.ts";
export { connectUrl, type ConnectUrlOptions } from "./connect-url.ts";
export * from "./connection.ts";
export {
  decode,
  encode,
  type Envelope,
  isRecord,
  negotiate,
  type Payload,
  PROTOCOL_VERSION,
  PROTOCOL_VERSIONS,
  toEnvelope,
  utf8Length,
  versionMismatch,
} from "./envelope.ts";
export * from "./event-log.ts";
export * from "./join-frames.ts";
export * from "./limits.ts";
export { type ModelFacts, type ModelFilter } from "./model-facts.ts";
export * from "./models-service.ts";
export * from "./protocol-error.ts";
export * from "./remote-client.ts";
export * from "./sequence.ts";
export * from "./service.ts";
export * from "./transport.ts";
export * from "./wire-client.ts";
export * from "./wire-peer.ts";
