import { errnoOf } from "@gyre/ai";
import { DurableError } from "@gyre/durable";
import { invalidRequest, ProtocolError } from "@gyre/protocol";
import { HostUnavailableError } from "../sessions/session-host.ts";

export function busyError(): ProtocolError {
  return new ProtocolError("session_busy", "A run goes on: steer it, abort it, or wait.");
}

export async function refuseOnError<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw toRefusal(error);
  }
}

/** What the store refuses, with the code that a client can act on. */
export function toRefusal(error: unknown): unknown {
  // What `SessionError` says of a session that is open, or that a run works in.
  if (errnoOf(error) === "locked") return busyError();
  if (!(error instanceof DurableError)) return error;
  switch (error.code) {
    case "busy":
      return busyError();
    case "rate_limited":
    case "too_large":
      return new ProtocolError(error.code, error.message, { cause: error });
    case "unavailable":
    case "closed":
      return new HostUnavailableError(error.message, { cause: error });
    default:
      return invalidRequest(error.message, { cause: error });
  }
}
