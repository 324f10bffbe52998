import { totalTokens } from "@gyre/ai";
import { version } from "@gyre/coding/internal/core/version";
import { type Cell, type CommandResult } from "@gyre/coding/internal/conversation/command";
import type { Harness } from "@gyre/coding/internal/harness/harness";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import { modelValue } from "@gyre/coding/internal/text/choices";
import { costText } from "../../text/usage-text.ts";

/** What this conversation is: model, mode, folder, sandbox, tools, session. */
export async function showStatus(harness: Harness, settings: Settings): Promise<CommandResult> {
  const { agent, mode, model, policy, session, spending, toolset } = harness;
  const { thinkingLevel, tools } = agent.state;
  const rows: Cell[][] = [
    ["version", version()],
    ["model", { code: modelValue(model) }],
    ["thinking", thinkingLevel],
    ["mode", mode],
    ...(policy ? [["policy", `${policy.path}: ${policy.describe()}`]] : []),
    ["folder", { code: toolset.env.workspace.root }],
    ...toolset.env.workspace.folders.map((folder) => ["and", { code: folder }]),
    ["sandbox", await describeSandbox(harness)],
    ["network", describeNetwork(settings)],
    ["tools", tools.map(({ name }) => name).join(", ") || "none"],
    ["session", session ? { code: session.header.id } : "begins with the first prompt"],
    ["cost", totalTokens(spending.session) > 0 ? costText(spending.session) : "nothing yet"],
  ];
  return { show: [{ type: "table", columns: ["", "now"], rows }] };
}

async function describeSandbox({ toolset }: Harness): Promise<string> {
  const { kind, missing } = await toolset.env.sandbox();
  if (kind !== "none") return kind;
  return missing === undefined ? "none, as you set it" : `none: ${missing}`;
}

function describeNetwork({ domains = [], network = false }: Settings): string {
  if (network) return "commands reach it";
  return domains.length > 0 ? `commands reach ${domains.join(", ")}` : "commands do not reach it";
}
