import type { AgentToolResult } from "@gyre/agent";
import { explainSize, MAX_ENTRY_BYTES } from "../contract/messages.ts";

/** With room for the fields of its entry. */
const MAX_RESULT_BYTES = MAX_ENTRY_BYTES - 65_536;

/** A result that the log can hold; one that is too large says so to the model. */
export function capResult(name: string, result: AgentToolResult): AgentToolResult {
  const bytes = Buffer.byteLength(JSON.stringify(result) ?? "");
  if (bytes < MAX_RESULT_BYTES) return result;
  const text = explainSize(`The result of tool "${name}"`, bytes);
  return { content: [{ type: "text", text }], isError: true, outcome: "error", reason: text };
}
