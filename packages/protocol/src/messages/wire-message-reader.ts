import type { AssistantMessage } from "@gyre/ai";
import {
  type BlockEvent,
  type CompactEvent,
  CompactEventError,
  CompactEventReader,
} from "@gyre/ai/stream";
import { ProtocolError } from "../frames/protocol-error.ts";

/** Reads the events of one response that arrives over a connection. Throws `ProtocolError`. */
export class WireMessageReader extends CompactEventReader {
  override read(event: CompactEvent): BlockEvent {
    try {
      return super.read(event);
    } catch (error) {
      throw toProtocolError(error);
    }
  }

  override finish(end: Parameters<CompactEventReader["finish"]>[0]): AssistantMessage {
    try {
      return super.finish(end);
    } catch (error) {
      throw toProtocolError(error);
    }
  }
}

function toProtocolError(error: unknown): unknown {
  if (!(error instanceof CompactEventError)) return error;
  return new ProtocolError(error.code, error.message, { cause: error });
}
