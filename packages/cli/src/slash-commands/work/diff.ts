import { DeniedError } from "@gyre/agent";
import { textOf } from "@gyre/ai";
import type { CommandResult } from "@gyre/coding/internal/conversation/command";
import type { Harness } from "@gyre/coding/internal/harness/harness";

/** What is not committed, or how the folder differs from a commit, as git has it. */
export async function showDiff(
  ref: string,
  harness: Pick<Harness, "callTool" | "toolset">,
  signal: AbortSignal,
): Promise<CommandResult> {
  await harness.toolset.add("git");
  const ask = async (args: Record<string, unknown>): Promise<string> => {
    try {
      return textOf(await harness.callTool({ tool: "git", args, signal }));
    } catch (error) {
      if (error instanceof DeniedError) throw new Error(error.reason, { cause: error });
      throw error;
    }
  };
  const texts =
    ref === ""
      ? [
          await ask({ action: "status" }),
          await ask({ action: "diff", staged: true }),
          await ask({ action: "diff" }),
        ]
      : [await ask({ action: "diff", ref })];
  return { show: [{ type: "code", text: texts.join("\n\n") }] };
}
