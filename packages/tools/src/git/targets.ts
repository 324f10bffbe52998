import type { AgentToolResult } from "@gyre/agent";
import type { GitArgs } from "./args.ts";
import type { Git } from "./program.ts";
import { checkedRef, GitError, literal } from "./repository.ts";
import { sanitize } from "@gyre/ai/text";
import { textResult } from "../text/text.ts";
import { listedName } from "../text/truncate.ts";
import { PathError } from "../workspace/workspace.ts";

/** For all that shows changes: nothing is run for it, and it looks the same everywhere. */
export const DIFF_FLAGS: readonly string[] = [
  "--no-ext-diff",
  "--no-textconv",
  "--no-color",
  "--submodule=short",
  "--ignore-submodules=dirty",
  "--src-prefix=a/",
  "--dst-prefix=b/",
];

/** Files that a call would write or remove. */
export async function changedFiles(
  git: Git,
  args: GitArgs,
  paths: readonly string[],
): Promise<string[]> {
  const ref = args.ref === undefined ? undefined : checkedRef(args.ref);
  const specs = paths.map(literal);
  if (args.action === "clean") {
    const output = await git.read([
      "ls-files",
      "-z",
      "--others",
      "--exclude-standard",
      "--",
      ...specs,
    ]);
    // A folder is named only where it is a repository of its own, which is left.
    return output.split("\0").filter((name) => name !== "" && !name.endsWith("/"));
  }
  if (args.action === "checkout" && paths.length > 0) {
    return changedNames(git, ref === undefined ? [] : [ref], specs);
  }
  if (args.action === "checkout") {
    if (ref === undefined) return [];
    const hasCommit = (await headCommit(git)) !== undefined;
    return changedNames(git, hasCommit ? ["HEAD", ref] : [ref]);
  }
  return args.mode === "hard" ? changedNames(git, [ref ?? "HEAD"]) : [];
}

export async function changedNames(
  git: Git,
  refs: readonly string[],
  specs: readonly string[] = [],
): Promise<string[]> {
  if (refs.includes("HEAD") && (await headCommit(git)) === undefined) return [];
  const output = await git.read([
    "diff",
    ...DIFF_FLAGS,
    "--name-only",
    "--no-renames",
    "-z",
    ...refs,
    "--",
    ...specs,
  ]);
  return output.split("\0").filter((name) => name !== "");
}

/** Throws where one of the files is not a tool's to change. */
export async function refuseProtected(git: Git, names: readonly string[]): Promise<void> {
  for (const name of names) {
    if (await isProtected(git, name)) {
      throw new GitError(
        `This would change ${listedName(name)}, which tools may not change. Ask the user to do it with git itself.`,
      );
    }
  }
}

async function isProtected(git: Git, name: string): Promise<boolean> {
  try {
    return (await git.env.workspace.resolve(name, { keepLink: true })).readOnly;
  } catch (error) {
    // A link on the way leads out: git writes through none.
    if (error instanceof PathError) return false;
    throw error;
  }
}

/** The object that a ref leads to; undefined where there is none. */
export function resolveRef(
  git: Git,
  ref: string,
  answers?: readonly number[],
): Promise<string | undefined> {
  return git.line(["rev-parse", "--quiet", "--verify", ref], { ...(answers && { answers }) });
}

export function headCommit(git: Git): Promise<string | undefined> {
  return resolveRef(git, "HEAD^{commit}");
}

export async function findCommit(git: Git, ref: string): Promise<string> {
  const id = await resolveRef(git, `${ref}^{commit}`, [0, 1, 128]);
  if (id === undefined) throw new GitError(`There is no ${listedName(ref)}.`);
  return id;
}

export function notRun({ filters }: Git): string {
  return filters.length === 0
    ? ""
    : ` The filters of this repository's config were not run: ${filters.map(listedName).join(", ")}.`;
}

/**
 * What was done, and the call that takes it back. git keeps a commit that no branch leads to
 * for two weeks at least, unless its user removes it.
 */
export function withWayBack(text: string, back: GitArgs): AgentToolResult {
  return textResult(`${text}\nTo get back, call git with:\n  ${JSON.stringify(back)}`);
}

/** Where a push would go. */
export interface PushTarget {
  remote: string;
  branch: string;
  /** Where the remote is, without passwords. */
  urls: string[];
}

export async function pushTarget(git: Git, args: GitArgs): Promise<PushTarget> {
  const current = await git.line(["symbolic-ref", "--quiet", "--short", "HEAD"]);
  const name = args.name ?? current;
  if (name === undefined) {
    throw new GitError("HEAD is detached: say which branch to push, by name.");
  }
  const own = git.config.get(`branch.${name}.remote`);
  const remote = checkedRef(args.remote ?? (own === undefined || own === "." ? "origin" : own));
  const urls = await git.read(["remote", "get-url", "--push", "--all", "--", remote]);
  return {
    remote,
    branch: checkedRef(name),
    urls: urls
      .split("\n")
      .filter((url) => url !== "")
      .map((url) =>
        sanitize(url.replace(/\/\/[^/@]*@/, "//"), { keepNewlines: false, exact: true }),
      ),
  };
}
