import { isLlmMessage } from "@gyre/agent";
import type { Harness } from "../../../harness/harness.ts";

/** What an interruption is kept as in a session. */
const KIND = "interrupted";

/**
 * Writes down, from now on, when the user has stopped what is done: calls that were stopped
 * tell that in their own words, and of a program that was killed no word is left at all.
 */
export function keepInterruptions(harness: Pick<Harness, "agent" | "session">): void {
  harness.agent.subscribe(async (event) => {
    if (event.type !== "agent_end" || event.stop !== "aborted") return;
    await harness.session?.append({ type: "custom", kind: KIND, data: null });
  });
}

/** Whether the user has stopped what was done last, and has said nothing since. */
export async function wasInterrupted({
  agent,
  session,
}: Pick<Harness, "agent" | "session">): Promise<boolean> {
  const last = agent.state.messages.at(-1);
  if (!last) return false;
  if (isLlmMessage(last) && last.role === "assistant") return last.stopReason === "aborted";
  if (!session) return false;
  for (const id of session.findBranch().toReversed()) {
    const entry = await session.read(id);
    if (entry.type === "custom" && entry.kind === KIND) return true;
    if (entry.type === "message") return false;
  }
  return false;
}
