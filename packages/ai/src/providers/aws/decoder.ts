import { AwsEventStreamDecoder } from "./event-stream.ts";
import { type Framing, type OnPayload } from "../../stream/sse.ts";

/** What our framing puts before the name of an exception, which has no event type. */
export const EXCEPTION = "exception:";

/** Events of Amazon's event stream; an exception comes as one whose name says so. */
export function createAwsDecoder(onPayload: OnPayload, contentType: string): Framing | undefined {
  // Not a stream of events but an answer of something in between, which says what it is.
  if (/json|html/.test(contentType)) return undefined;
  return new AwsEventStreamDecoder((data, event, kind) =>
    onPayload(data, kind === "event" ? event : EXCEPTION + (event ?? "")),
  );
}
