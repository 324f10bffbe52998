import { isLlmMessage } from "@gyre/agent";
import type { ConversationAgent } from "./types.ts";

/** The kind of custom entry that marks an interruption in a session. */
const KIND = "interrupted";

/**
 * Records in the session, from now on, that the user has stopped a run. Nothing else does: a
 * run whose program was killed looks the same in the transcript.
 */
export function recordInterruptions(harness: Pick<ConversationAgent, "agent" | "session">): void {
  harness.agent.subscribe(async (event) => {
    if (event.type !== "agent_end" || event.stop !== "aborted") return;
    await harness.session?.append({ type: "custom", kind: KIND, data: null });
  });
}

/** Whether the user has stopped the last run, and has sent nothing since. */
export async function wasInterrupted({
  agent,
  session,
}: Pick<ConversationAgent, "agent" | "session">): Promise<boolean> {
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
