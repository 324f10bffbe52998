import type { AgentToolResult } from "@gyre/agent";
import type { Access } from "../contract/access.ts";
import type { ToolEnv } from "../contract/env.ts";
import { sanitize } from "@gyre/ai/text";
import { counted } from "../text/text.ts";
import { commandLine, type GitArgs, resolvePaths } from "./args.ts";
import { Git, type GitOptions } from "./program.ts";
import { blame, diff, log, show, status } from "./read.ts";
import { findRepository, GitError } from "./repository.ts";
import { changedFiles, pushTarget } from "./targets.ts";
import { add, branch, checkout, clean, commit, push, reset, stash } from "./write.ts";

const READ_ACTIONS: readonly GitArgs["action"][] = ["status", "diff", "log", "blame", "show"];

/** Paths that a person is shown before they approve; the others are counted. */
const MAX_TARGETS = 200;

/** Does what the action says. */
export async function runGit(
  env: ToolEnv,
  options: GitOptions,
  args: GitArgs,
  signal: AbortSignal,
): Promise<AgentToolResult> {
  await refuseChangeAbove(env, options, args);
  const git = await Git.open(env, options, signal);
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

/** What a call would do, with what git says would change. */
export async function describeAccess(
  env: ToolEnv,
  options: GitOptions,
  args: GitArgs,
): Promise<Access> {
  await refuseChangeAbove(env, options, args);
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

/**
 * What changes a repository further up than the workspace changes files or an index outside of
 * it, which are not the workspace's.
 */
async function refuseChangeAbove(env: ToolEnv, options: GitOptions, args: GitArgs): Promise<void> {
  if (READ_ACTIONS.includes(args.action)) return;
  if (args.action === "branch" && args.name === undefined) return;
  if (args.action === "stash" && isReading(args)) return;
  const { tree } = await findRepository(env, options.repositories ?? []);
  if (tree === env.workspace.root) return;
  throw new GitError(
    `The workspace is a folder of the repository at ${tree}, and this tool only reads there: run git ${args.action} with shell.`,
  );
}

function isReading({ operation = "list" }: GitArgs): boolean {
  return operation === "list" || operation === "show";
}

function isDestructive({ action, paths = [], mode }: GitArgs): boolean {
  if (action === "clean") return true;
  return action === "checkout" ? paths.length > 0 : mode === "hard";
}
