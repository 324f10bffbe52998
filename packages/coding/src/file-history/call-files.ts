import { type AgentTool, present, type ToolInvocation } from "@gyre/agent";
import { isGuarded } from "@gyre/tools";

/** Whether a call leaves all files as they are. One that does not say so may do anything. */
export async function isReadingCall({ tool, args }: ToolInvocation): Promise<boolean> {
  if (tool.presentation?.delegates === true) return true;
  if (namesChanges(tool, args) || !isGuarded(tool)) return false;
  try {
    const { kind } = await tool.access(args);
    return (
      kind === "none" ||
      kind === "read" ||
      (kind === "network" && tool.presentation?.kind === "fetch")
    );
  } catch {
    // The call itself will say what is wrong with it.
    return false;
  }
}

/** Whether a tool says beforehand which files a call changes, and changes no others. */
function namesChanges(tool: AgentTool, args: ToolInvocation["args"]): boolean {
  return present(() => tool.presentation?.effects?.(args).changes) !== undefined;
}

/** The files that a call changes; undefined where it does not say. */
export async function findNamedFiles({
  tool,
  args,
}: ToolInvocation): Promise<readonly string[] | undefined> {
  if (!namesChanges(tool, args) || !isGuarded(tool)) return undefined;
  try {
    return (await tool.access(args)).targets;
  } catch {
    // It is about to fail for the same reason, and changes nothing.
    return [];
  }
}
