import { defineTool, type ToolInvocation } from "@gyre/agent";
import { scriptedModel } from "@gyre/ai/testing";
import type { GuardedTool } from "../../contract/access.ts";
import { permissions } from "../../permissions.ts";
import type { Workspace } from "../../workspace/workspace.ts";

/** Why a line is asked about in mode `auto`; undefined where it runs. */
export async function findAutoQuestion(
  command: string,
  workspace: Workspace,
): Promise<string | undefined> {
  let question: string | undefined;
  const guard = permissions({
    mode: "auto",
    sandboxed: true,
    workspace,
    ask: ({ reason }) => {
      question = reason;
      return Promise.resolve({ allow: false });
    },
  });
  const tool: GuardedTool = {
    ...defineTool({
      name: "shell",
      description: "For tests.",
      parameters: { type: "object", properties: {} },
      execute: () => "done",
    }),
    access: () => ({ summary: "", kind: "run", targets: [command] }),
  };
  const call: ToolInvocation = {
    toolCall: { type: "toolCall", id: "c1", name: tool.name, arguments: {} },
    tool,
    args: {},
    signal: new AbortController().signal,
    run: { sessionId: undefined, model: scriptedModel([]).model, fallbacks: [] },
  };
  try {
    await guard.tool?.(call, () => Promise.resolve({ content: [] }));
    return undefined;
  } catch (error) {
    return question ?? String(error);
  }
}
