export { LineDecoder } from "./ndjson.ts";
export { type Framing, FramingError, type OnPayload, type Payload, SseDecoder } from "./sse.ts";
