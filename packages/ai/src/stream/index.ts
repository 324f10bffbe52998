export {
  BLOCK_EVENT_TYPES,
  type BlockEvent,
  type CompactEvent,
  type MessageHead,
  toCompactEvent,
  toMessageHead,
} from "./compact-event.ts";
export * from "./compact-event-reader.ts";
export * from "./compact-event-writer.ts";
export { LineDecoder } from "./ndjson.ts";
export { type Framing, FramingError, type OnPayload, type Payload, SseDecoder } from "./sse.ts";
