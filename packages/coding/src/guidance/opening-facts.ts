import { arch, release } from "node:os";
import type { AgentMessage } from "@gyre/agent";
import { toRecord } from "@gyre/ai";
import type { PermissionMode, Toolset } from "@gyre/tools";
import { OTHER_TOOLS } from "../core/tool-lists.ts";
import type { Settings } from "../settings/settings.ts";
import type { NoticeMessage } from "../conversation/notice.ts";

const GIT_MS = 2000;

export interface FactSources {
  toolset: Toolset;
  /** The tools that the model has. */
  tools: readonly string[];
  mode: PermissionMode;
  settings: Pick<Settings, "network" | "domains">;
  now: Date;
  signal: AbortSignal;
}

/**
 * What holds as a conversation begins, for the model: date, system, folder, git, mode, sandbox, tools that are off.
 * Undefined where the conversation has it already.
 */
export async function findFacts(
  sources: FactSources,
  messages: readonly AgentMessage[],
): Promise<NoticeMessage | undefined> {
  const { mode, now, toolset } = sources;
  const [git, sandbox] = await Promise.all([describeGit(sources), describeSandbox(sources)]);
  const text = [
    `Date: ${formatDate(now)}`,
    `System: ${process.platform} ${release()} ${arch()}`,
    `Folder: ${toolset.env.workspace.root}`,
    ...describeFolders(toolset.env.workspace.folders),
    `Git: ${git}`,
    `Mode: ${mode}`,
    ...(sandbox === undefined ? [] : [`Commands: ${sandbox}`]),
    ...describeOff(sources),
  ].join("\n");
  const last = messages.findLast((message) => message.role === "notice" && message.isFacts);
  if (last?.role === "notice" && last.text === text) return undefined;
  return { role: "notice", text, summary: "", isFacts: true, timestamp: now.getTime() };
}

/** Those that were added. */
function describeFolders(folders: readonly string[]): string[] {
  return folders.length === 0 ? [] : [`Further folders of the workspace: ${folders.join(", ")}`];
}

/** As a calendar of this place has it. */
function formatDate(now: Date): string {
  const two = (part: number): string => String(part).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
}

/** By the tool, which runs nothing that a repository names. A repository that answers late, or never, holds up no prompt. */
async function describeGit({ toolset, signal: whole }: FactSources): Promise<string> {
  const { registry } = toolset;
  if (!registry.has("git")) return "not looked at";
  const late = AbortSignal.timeout(GIT_MS);
  const signal = AbortSignal.any([whole, late]);
  try {
    const result = await registry.get("git").execute(
      { action: "status" },
      {
        id: "facts",
        signal,
        update: () => {},
        host: { call: () => Promise.reject(new Error("No further calls.")) },
        messages: [],
      },
    );
    const { branch, commit, staged, unstaged, untracked } = toRecord(toRecord(result)["details"]);
    const count = (list: unknown): number => (Array.isArray(list) ? list.length : 0);
    const at = typeof branch === "string" ? `branch ${branch}` : `detached at ${String(commit)}`;
    const changed = `${count(staged)} staged, ${count(unstaged)} changed, ${count(untracked)} new`;
    return `${at}; files: ${changed}`;
  } catch {
    if (late.aborted) return "did not answer in time";
    // There is no repository, or one that git cannot read: the model learns why if it asks.
    return "no repository";
  }
}

/** Undefined where the model has no commands. To find out takes a process. */
async function describeSandbox({
  toolset,
  settings,
  tools,
}: FactSources): Promise<string | undefined> {
  if (!tools.includes("shell")) return undefined;
  const { kind } = await toolset.env.sandbox();
  if (kind === "none") return "not in a sandbox";
  const { domains = [], network = false } = settings;
  const reach = domains.length > 0 ? `reach ${domains.join(", ")} alone` : "reach no network";
  return `in a sandbox; they change files of the folder and of /tmp alone${network ? "" : `, and ${reach}`}`;
}

function describeOff({ tools }: FactSources): string[] {
  const off = OTHER_TOOLS.filter((name) => !tools.includes(name));
  return off.length > 0
    ? [`Tools that are off, and that the user can turn on: ${off.join(", ")}`]
    : [];
}
