import { AwsEventStreamDecoder } from "./event-stream.ts";
import { type Framing, type OnPayload, SseDecoder } from "../../stream/sse.ts";

/** What our framing puts before the name of an exception, which has no event type. */
export const EXCEPTION = "exception:";

/** Events of Amazon's event stream; an exception comes as one whose name says so. */
export function createAwsDecoder(onPayload: OnPayload, contentType: string): Framing {
  // Not a stream of events but an answer of something in between, which says what it is.
  if (/json|html/.test(contentType)) return new SseDecoder(onPayload);
  return new AwsEventStreamDecoder((data, event, kind) =>
    onPayload(data, kind === "event" ? event : EXCEPTION + (event ?? "")),
  );
}
