import { count } from "../../../text/command-text.ts";
import type { TerminalCommand } from "../ui/ui.ts";

/** `/compact [what to keep]`: makes the context smaller now. */
export const compactCommand: TerminalCommand = {
  name: "compact",
  about: "make the context smaller now",
  hint: "what to keep above all",
  async run(rest, { harness: { agent }, signal, ui }) {
    const options = { signal, ...(rest !== "" && { keep: rest }) };
    const gain = await agent.compact(options).catch((error: unknown) => {
      if (!isCancelled(error)) throw error;
      throw new Error("The compaction was stopped: all is as it was.", { cause: error });
    });
    ui.say(
      gain
        ? `The context went from about ${count(gain.before)} to ${count(gain.after)} tokens. What was left out stays in the session.`
        : "There is nothing to leave out yet.",
    );
  },
};

function isCancelled(error: unknown): boolean {
  return error instanceof Error && error.name === "Cancelled";
}
