import { validateToolArguments } from "@gyre/ai";
import type { GuardedTool } from "../contract/access.ts";
import { defineEntryTool } from "../contract/define-tool.ts";
import type { ToolEnv } from "../contract/env.ts";
import { checkArgs, GIT_PARAMETERS } from "./args.ts";
import { gitEntry } from "./entry.ts";
import type { GitOptions } from "./program.ts";

/** For one call, which may run git several times. */
export const GIT_TOOL_TIMEOUT_MS = 600_000;
/** What git has started has to be ended before an abort can be answered. */
const GIT_ABORT_GRACE_MS = 1_000;

/**
 * git without a shell, and without anything that the repository would have it run. What
 * cannot be undone is destructive by its access.
 */
export function gitTool(env: ToolEnv, options: GitOptions = {}): GuardedTool {
  return defineEntryTool(gitEntry, {
    label: "Git",
    description: "git, rather than by shell. No hooks, filters, aliases or signing.",
    parameters: GIT_PARAMETERS,
    timeoutMs: GIT_TOOL_TIMEOUT_MS,
    abortGraceMs: GIT_ABORT_GRACE_MS,
    async execute(args, { signal }) {
      checkArgs(args);
      const { runGit } = await import("./run.ts");
      return runGit(env, options, args, signal);
    },
    async access(given) {
      const checked = await validateToolArguments(
        { name: gitEntry.name, parameters: GIT_PARAMETERS },
        given,
      );
      if (!checked.ok) throw new Error(checked.error);
      checkArgs(checked.value);
      const { describeAccess } = await import("./run.ts");
      return describeAccess(env, options, checked.value);
    },
  });
}
