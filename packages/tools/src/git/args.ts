import type { InferArguments } from "@gyre/ai";
import { cutText } from "@gyre/ai/text";
import type { ToolEnv } from "../contract/env.ts";
import { GitError, gitPath } from "./repository.ts";
import { within } from "../text/text.ts";

/** Of a message, where the call is shown on one line. */
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
    paths: { type: "array", items: { type: "string" } },
    ref: { type: "string" },
    to: { type: "string" },
    staged: { type: "boolean" },
    stat: { type: "boolean" },
    context: { type: "integer" },
    offset: { type: "integer" },
    limit: { type: "integer" },
    message: { type: "string" },
    all: { type: "boolean" },
    name: { type: "string", description: "branch" },
    delete: { type: "boolean" },
    create: { type: "string", description: "checkout -b" },
    force: { type: "boolean" },
    mode: { type: "string", enum: ["soft", "mixed", "hard"] },
    remote: { type: "string" },
    operation: {
      type: "string",
      enum: ["push", "list", "show", "apply", "pop", "drop"],
    },
  },
  required: ["action"],
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

/** Of a diff, around each change. */
export const MAX_GIT_CONTEXT = 100;

/** Throws on an argument that the action does not take, or that means nothing. */
export function checkArgs(args: GitArgs): void {
  const { action } = args;
  const wrong = Object.keys(args).filter(
    (name) => name !== "action" && !TAKES[action].some((taken) => taken === name),
  );
  if (wrong.length > 0) {
    throw new GitError(
      `git ${action} does not take ${wrong.join(", ")}. It takes: ${TAKES[action].join(", ")}.`,
    );
  }
  const { offset = 1, limit = 1, context = 0, message, paths = [] } = args;
  within("offset", offset, { least: 1 });
  within("limit", limit, { least: 1 });
  within("context", context, { least: 0 });
  if (message === "") throw new GitError("The message is empty.");
  if (paths.includes("")) throw new GitError('A path is empty. Write "." for all.');
}

/** The call as a person would type it. */
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
export async function resolvePaths(env: ToolEnv, { paths = [] }: GitArgs): Promise<string[]> {
  return Promise.all(paths.map((path) => gitPath(env, path)));
}
