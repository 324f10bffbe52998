import { ProtocolError } from "@gyre/protocol";
import type { SessionTools } from "./live-session.ts";

/** Client tools of a session whose runs execute here or on another server. */
export class SharedTools implements SessionTools {
  register(): void {
    throw new ProtocolError("not_implemented", "Client tools are not served here.");
  }

  settleCall(): void {
    throw new ProtocolError("tool_not_found", "No call of that name waits for an answer.");
  }

  disconnect(): void {}

  close(): void {}
}
