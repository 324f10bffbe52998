import type { InferArguments } from "@gyre/ai";
import type { ToolEnv } from "./env.ts";
import { GitError, gitPath } from "./git-repository.ts";
import { cutText } from "./truncate.ts";

/** Of a message, where the call is told on one line. */
const SHOWN_MESSAGE_CHARS = 200;

export const GIT_PARAMETERS = {
  type: "object",
  properties: {
    action: {
      type: "string",
      enum: [
        "status",
        "diff",
        "log",
        "blame",
        "show",
        "add",
        "commit",
        "branch",
        "checkout",
        "reset",
        "clean",
        "push",
        "stash",
      ],
    },
    paths: {
      type: "array",
      items: { type: "string", minLength: 1 },
      description:
        "Files or folders; no patterns. checkout with paths puts them back to ref (or to what is staged), reset with paths unstages them, show with one path gives that file at ref.",
    },
    ref: {
      type: "string",
      description:
        "Commit, branch or tag. diff: the one to compare with (default: what is staged). branch, checkout with create: where it starts. stash: which one.",
    },
    to: { type: "string", description: "diff: the other commit (default: the files as they are)." },
    staged: { type: "boolean", description: "diff: what is staged." },
    stat: { type: "boolean", description: "diff, show: only which files, and how many lines." },
    context: {
      type: "integer",
      minimum: 0,
      maximum: 100,
      description: "diff: unchanged lines around a change.",
    },
    offset: {
      type: "integer",
      minimum: 1,
      description: "diff, show, blame: the first line; log, branch, stash list: the first entry.",
    },
    limit: { type: "integer", minimum: 1, description: "log, branch, blame: how many." },
    message: { type: "string", minLength: 1, description: "commit, stash push." },
    all: {
      type: "boolean",
      description:
        "add: everything; commit: all changes of tracked files; stash push: untracked files too.",
    },
    name: {
      type: "string",
      description: "branch: the one to make or delete; without it all are listed.",
    },
    delete: { type: "boolean", description: "branch: delete it, if it is merged." },
    create: { type: "string", description: "checkout: a new branch of this name." },
    force: { type: "boolean", description: "push; branch with delete: also if commits get lost." },
    mode: {
      type: "string",
      enum: ["soft", "mixed", "hard"],
      description: "reset. Default: mixed.",
    },
    remote: { type: "string", description: "push. Default: that of the branch, else origin." },
    operation: {
      type: "string",
      enum: ["push", "list", "show", "apply", "pop", "drop"],
      description: "stash. Default: list.",
    },
  },
  required: ["action"],
  additionalProperties: false,
} as const;

/** The arguments of a call. */
export type GitArgs = InferArguments<typeof GIT_PARAMETERS>;
type Action = GitArgs["action"];

/** What each action takes. */
const TAKES: Record<Action, readonly (keyof GitArgs)[]> = {
  status: ["paths"],
  diff: ["paths", "ref", "to", "staged", "stat", "context", "offset"],
  log: ["paths", "ref", "offset", "limit"],
  blame: ["paths", "ref", "offset", "limit"],
  show: ["paths", "ref", "stat", "offset"],
  add: ["paths", "all"],
  commit: ["message", "all"],
  branch: ["name", "ref", "delete", "force", "offset", "limit"],
  checkout: ["ref", "paths", "create"],
  reset: ["mode", "ref", "paths"],
  clean: ["paths"],
  push: ["remote", "name", "force"],
  stash: ["operation", "message", "all", "ref", "offset"],
};

/** Throws on an argument that the action does not take: it would mean nothing. */
export function checkArgs(args: GitArgs): void {
  const { action } = args;
  const wrong = Object.keys(args).filter(
    (name) => name !== "action" && !TAKES[action].some((taken) => taken === name),
  );
  if (wrong.length > 0) {
    throw new GitError(
      `git ${action} does not take ${wrong.join(", ")}. It takes: ${TAKES[action].join(", ")}.`,
      null,
    );
  }
}

/** The call as somebody would type it. */
export function commandLine(args: GitArgs, paths: readonly string[]): string {
  const { action } = args;
  const words = [
    "git",
    action,
    action === "stash" ? (args.operation ?? "list") : undefined,
    args.mode && `--${args.mode}`,
    args.staged && "--staged",
    args.all && "--all",
    args.force && "--force",
    args.delete && "--delete",
    args.create && `-b ${args.create}`,
    args.remote,
    args.name,
    args.message && cutText(JSON.stringify(args.message), SHOWN_MESSAGE_CHARS),
    args.ref,
    args.to,
    paths.length > 0 && `-- ${paths.join(" ")}`,
  ];
  return words.filter((word) => word).join(" ");
}

/** The paths of a call, from the root of the workspace. */
export async function pathsOf(env: ToolEnv, { paths = [] }: GitArgs): Promise<string[]> {
  return Promise.all(paths.map((path) => gitPath(env, path)));
}
