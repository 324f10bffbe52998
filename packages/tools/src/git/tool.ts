import { type AgentToolResult, defineTool } from "@gyre/agent";
import { validateToolArguments } from "@gyre/ai";
import type { Access, GuardedTool } from "../contract/access.ts";
import type { ToolEnv } from "../contract/env.ts";
import { checkArgs, commandLine, GIT_PARAMETERS, type GitArgs, resolvePaths } from "./args.ts";
import { add, branch, checkout, clean, commit, push, reset, stash } from "./write.ts";
import { blame, diff, log, show, status } from "./read.ts";
import { Git, type GitOptions } from "./program.ts";
import { changedFiles, pushTarget } from "./targets.ts";
import { sanitize } from "../text/sanitize.ts";
import { counted } from "../text/text.ts";
import { gitEntry } from "./entry.ts";

/** For one call, which may run git several times. */
export const GIT_TOOL_TIMEOUT_MS = 600_000;
/** What git has started has to be ended before an abort can be answered. */
const GIT_ABORT_GRACE_MS = 1_000;
/** Paths that a person is shown before they approve; the others are counted. */
const MAX_TARGETS = 200;

/**
 * git without a shell, and without anything that the repository would have it run. What
 * cannot be undone is destructive by its access.
 */
export function gitTool(env: ToolEnv, options: GitOptions = {}): GuardedTool {
  const tool = defineTool({
    name: gitEntry.name,
    presentation: gitEntry.presentation,
    label: "Git",
    description:
      "git in the workspace; use it rather than a shell. Runs no hooks, filters, aliases or signing.",
    parameters: GIT_PARAMETERS,
    timeoutMs: GIT_TOOL_TIMEOUT_MS,
    abortGraceMs: GIT_ABORT_GRACE_MS,
    async execute(args, { signal }) {
      checkArgs(args);
      const git = await Git.open(env, options, signal);
      return run(git, args);
    },
  });
  return {
    ...tool,
    async access(given) {
      const checked = await validateToolArguments(
        { name: "git", parameters: GIT_PARAMETERS },
        given,
      );
      if (!checked.ok) throw new Error(checked.error);
      checkArgs(checked.value);
      return describeAccess(env, options, checked.value);
    },
  };
}

function run(git: Git, args: GitArgs): Promise<AgentToolResult> {
  switch (args.action) {
    case "status":
      return status(git, args);
    case "diff":
      return diff(git, args);
    case "log":
      return log(git, args);
    case "blame":
      return blame(git, args);
    case "show":
      return show(git, args);
    case "add":
      return add(git, args);
    case "commit":
      return commit(git, args);
    case "branch":
      return branch(git, args);
    case "checkout":
      return checkout(git, args);
    case "reset":
      return reset(git, args);
    case "clean":
      return clean(git, args);
    case "push":
      return push(git, args);
    case "stash":
      return stash(git, args);
  }
}

async function describeAccess(env: ToolEnv, options: GitOptions, args: GitArgs): Promise<Access> {
  const paths = await resolvePaths(env, args);
  const summary = sanitize(commandLine(args, paths), { keepNewlines: false, exact: true });
  const targets = paths.length > 0 ? paths : ["."];
  switch (args.action) {
    case "status":
    case "diff":
    case "log":
    case "blame":
    case "show":
      return { kind: "read", targets, summary };
    case "add":
    case "commit":
      return { kind: "write", targets, summary };
    case "branch": {
      if (args.name === undefined) return { kind: "read", targets, summary };
      const destructive = args.delete === true && args.force === true;
      return { kind: "write", targets: [args.name], summary, ...(destructive && { destructive }) };
    }
    case "stash":
      if (isReading(args)) return { kind: "read", targets, summary };
      return {
        kind: "write",
        targets: [args.ref ?? "."],
        summary,
        ...(args.operation === "drop" && { destructive: true }),
      };
    case "push": {
      const git = await Git.open(env, options);
      const { urls } = await pushTarget(git, args);
      return {
        kind: "network",
        targets: urls,
        summary: `${summary} to ${urls.join(", ")}`,
        ...(args.force && { destructive: true }),
      };
    }
    case "checkout":
    case "reset":
    case "clean": {
      const git = await Git.open(env, options);
      const changed = await changedFiles(git, args, paths);
      const shown = changed.slice(0, MAX_TARGETS);
      return {
        kind: "write",
        targets: shown.length > 0 ? shown : targets,
        summary: `${summary} (${counted(changed.length, "file")} would change)`,
        ...(isDestructive(args) && { destructive: true }),
      };
    }
  }
}

function isReading({ operation = "list" }: GitArgs): boolean {
  return operation === "list" || operation === "show";
}

function isDestructive({ action, paths = [], mode }: GitArgs): boolean {
  if (action === "clean") return true;
  return action === "checkout" ? paths.length > 0 : mode === "hard";
}
