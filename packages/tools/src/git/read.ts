import { access as exists } from "node:fs/promises";
import { join } from "node:path";
import type { AgentToolResult } from "@gyre/agent";
import { commandLine, type GitArgs, MAX_GIT_CONTEXT, resolvePaths } from "./args.ts";
import type { Git } from "./program.ts";
import { checkedRef, GitError } from "./repository.ts";
import { gitEntry } from "./entry.ts";
import { findReadRule } from "../workspace/read-rules.ts";
import { DIFF_FLAGS, headCommit, resolveRef } from "./targets.ts";
import { blameLines, LOG_FORMAT, logLines, parseStatus, statusText } from "./text.ts";
import { limitPage } from "../contract/env.ts";
import { fromSource } from "@gyre/ai/text";
import { grouped, textResult } from "../text/text.ts";
import { type LineLimits, linesWithin, listedName } from "../text/truncate.ts";

/** Lines of a diff, a commit or a file that one call shows. */
export const MAX_GIT_LINES = 2_000;
export const MAX_GIT_BYTES: number = 50 * 1024;
export const MAX_GIT_LINE_CHARS = 2_000;
/** Commits of a log, branches of a list, stashes. */
export const DEFAULT_GIT_ENTRIES = 30;
export const MAX_GIT_ENTRIES = 300;
/** Files that a result names as left out. */
const MAX_FORBIDDEN_NAMES = 50;
/** Lines of a file that one call of blame shows. */
export const MAX_BLAME_LINES = 500;
function limitLines(git: Git): LineLimits {
  const page = limitPage(git.env, MAX_GIT_BYTES);
  return { ...page, maxLines: MAX_GIT_LINES, maxLineChars: MAX_GIT_LINE_CHARS };
}

export async function status(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const paths = await resolvePaths(git.env, args);
  const output = await git.read([
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    "--untracked-files=all",
    "--ignore-submodules=dirty",
    "--",
    ...git.pathspecs(paths),
  ]);
  const parsed = parseStatus(output, git.prefix);
  const doing = await underWay(git);
  return textResult(statusText(parsed, doing), { ...parsed, doing });
}

const UNDER_WAY: readonly (readonly [file: string, what: string])[] = [
  ["MERGE_HEAD", "a merge"],
  ["rebase-merge", "a rebase"],
  ["rebase-apply", "a rebase"],
  ["CHERRY_PICK_HEAD", "a cherry-pick"],
  ["REVERT_HEAD", "a revert"],
  ["BISECT_LOG", "a bisect"],
];

export async function underWay(git: Git): Promise<string[]> {
  const found: string[] = [];
  for (const [file, what] of UNDER_WAY) {
    const isThere = await exists(join(git.folder, file)).then(
      () => true,
      () => false,
    );
    if (isThere) found.push(what);
  }
  return found;
}

export async function diff(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const { ref, to, staged, stat, context } = args;
  if (to !== undefined && ref === undefined) {
    throw new GitError("git diff takes `to` only together with `ref`.");
  }
  const paths = await resolvePaths(git.env, args);
  const compared = [ref, to].filter((name) => name !== undefined).map(checkedRef);
  for (const name of compared) await requireCommit(git, name);
  const which = [...(staged ? ["--cached"] : []), ...compared, "--", ...git.pathspecs(paths)];
  const forbidden = await findForbidden(git, ["diff", ...namesOnly(git), ...which]);
  return shown(
    git,
    args,
    [
      "diff",
      ...diffFlags(git),
      ...(stat ? ["--stat"] : []),
      ...(context === undefined ? [] : [`--unified=${Math.min(context, MAX_GIT_CONTEXT)}`]),
      ...which,
      ...git.excluding(forbidden),
    ],
    forbidden,
  );
}

export async function show(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const ref = checkedRef(args.ref ?? "HEAD");
  const [path, ...others] = await resolvePaths(git.env, args);
  if (others.length > 0) throw new GitError("git show takes one path at a time.");
  await requireCommit(git, ref);
  if (path !== undefined) {
    const place = git.inTree(path);
    return shown(git, args, [
      "cat-file",
      "-p",
      place === "." ? `${ref}^{tree}` : `${ref}:${place}`,
    ]);
  }
  const within = ["--", ...git.pathspecs([])];
  const listing = ["show", "--format=", "-m", ...namesOnly(git), ref, ...within];
  const forbidden = await findForbidden(git, listing);
  return shown(
    git,
    args,
    [
      "show",
      ...diffFlags(git),
      "--no-show-signature",
      "--format=medium",
      args.stat ? "--stat" : "--patch",
      ref,
      ...within,
      ...git.excluding(forbidden),
    ],
    forbidden,
  );
}

/** Names are from the workspace, also where the repository is further up. */
function diffFlags(git: Git): string[] {
  return [...DIFF_FLAGS, ...(git.prefix === "" ? [] : ["--relative"])];
}

function namesOnly(git: Git): string[] {
  return [...diffFlags(git), "--name-only", "--no-renames", "-z"];
}

/** Of the files that a command lists, those that rules forbid to read. */
async function findForbidden(git: Git, command: readonly string[]): Promise<string[]> {
  const forbids = findReadRule(git.env.workspace, gitEntry.name);
  if (!forbids) return [];
  // Between two commits there is a line end.
  const names = (await git.read(command)).split("\0").map((name) => name.replace(/^\n+/, ""));
  return [...new Set(names)].filter((name) => name !== "" && forbids(name)).sort();
}

/**
 * Where rules forbid to read files, and where the repository has files outside of the workspace,
 * what is shown has to have a path: the id of a content, or of a folder inside, has none.
 */
async function requireCommit(git: Git, ref: string): Promise<void> {
  const hasRules = findReadRule(git.env.workspace, gitEntry.name) !== undefined;
  if (!hasRules && git.prefix === "") return;
  for (const name of ref.split(/\.{2,3}/).filter((part) => part !== "")) {
    if ((await resolveRef(git, `${name}^{commit}`, [0, 1, 128])) !== undefined) continue;
    throw new GitError(
      `${listedName(name)} is not a commit, and ${hasRules ? "rules forbid to read some files" : "the repository has files outside of the workspace"}: name a commit and a path.`,
    );
  }
}

/** Output as it is, from a line on, with how to go on. */
async function shown(
  git: Git,
  args: GitArgs,
  command: readonly string[],
  forbidden: readonly string[] = [],
): Promise<AgentToolResult> {
  const first = args.offset ?? 1;
  const rules = forbidden.length === 0 ? [] : [describeForbidden(forbidden)];
  const { lines, total, next } = await git.show(command, first, limitLines(git));
  if (lines.length === 0) {
    const none =
      total === 0
        ? "Nothing to show."
        : `There are only ${total} lines; offset ${first} is beyond them.`;
    return textResult([none, ...rules]);
  }
  const isBinary = lines.some((line) => line.includes("\0"));
  if (isBinary) return textResult("It is binary, and not shown.");
  const name = commandLine(args, args.paths ?? []);
  const text = fromSource({ kind: "command", name }, lines.join("\n"));
  if (next === undefined) return textResult([text, ...rules], { lines: total });
  const note = `[Lines ${first} to ${next - 1} of ${grouped(total)}. Go on with offset=${next}, or ask for less: single paths${args.action === "diff" || args.action === "show" ? ", or stat" : ""}.]`;
  return textResult([text, note, ...rules], { lines: total, next });
}

function describeForbidden(names: readonly string[]): string {
  const shown = names.slice(0, MAX_FORBIDDEN_NAMES).map(listedName).join(", ");
  const more = names.length - MAX_FORBIDDEN_NAMES;
  return `[Left out, because rules forbid to read them: ${shown}${more > 0 ? ` and ${more} more` : ""}.]`;
}

function entryRange({ offset = 1, limit = DEFAULT_GIT_ENTRIES }: GitArgs): {
  first: number;
  count: number;
} {
  return { first: offset, count: Math.min(limit, MAX_GIT_ENTRIES) };
}

/** Entries of a list, of which one more than wanted was asked for. */
function listed(
  git: Git,
  args: GitArgs,
  entries: readonly string[],
  range: { first: number; count: number },
  none: string,
): AgentToolResult {
  if (entries.length === 0) return textResult(none);
  const fitting = linesWithin(entries.slice(0, range.count), limitPage(git.env, MAX_GIT_BYTES));
  const text = fromSource({ kind: "command", name: commandLine(args, []) }, fitting.join("\n"));
  if (entries.length <= fitting.length) return textResult([text]);
  return textResult([text, `[There are more. Go on with offset=${range.first + fitting.length}.]`]);
}

export async function log(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const range = entryRange(args);
  const paths = await resolvePaths(git.env, args);
  if (args.ref === undefined && !(await headCommit(git))) {
    return textResult("There is no commit yet.");
  }
  const output = await git.read([
    "log",
    "-z",
    LOG_FORMAT,
    "--date=short",
    "--no-show-signature",
    `--skip=${range.first - 1}`,
    `--max-count=${range.count + 1}`,
    checkedRef(args.ref ?? "HEAD"),
    "--",
    ...git.pathspecs(paths),
  ]);
  return listed(git, args, logLines(output), range, "No commit fits.");
}

export async function blame(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const [path, ...others] = await resolvePaths(git.env, args);
  if (path === undefined || others.length > 0) {
    throw new GitError("git blame takes one path.");
  }
  const first = args.offset ?? 1;
  const count = Math.min(args.limit ?? MAX_BLAME_LINES, MAX_BLAME_LINES);
  const output = await git.read([
    "blame",
    "--porcelain",
    "--no-textconv",
    // One more, to know whether there are more.
    `-L${first},+${count + 1}`,
    ...(args.ref === undefined ? [] : [checkedRef(args.ref)]),
    "--",
    path,
  ]);
  return listed(git, args, blameLines(output), { first, count }, "The file is empty.");
}

export async function branches(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const range = entryRange(args);
  const fields = [
    "%(HEAD)",
    "%(refname:short)",
    "%(objectname:short)",
    "%(committerdate:short)",
    "%(upstream:short)",
    "%(contents:subject)",
  ];
  const output = await git.read([
    "for-each-ref",
    "--sort=-committerdate",
    `--count=${range.first + range.count}`,
    `--format=${fields.join("%1f")}`,
    "refs/heads/",
  ]);
  const entries = output
    .split("\n")
    .filter((line) => line !== "")
    .slice(range.first - 1)
    .map((line) => {
      const [head = "", name = "", id = "", date = "", upstream = "", subject = ""] =
        line.split("\x1f");
      const follows = upstream === "" ? "" : ` -> ${listedName(upstream)}`;
      return `${head === "*" ? "*" : " "} ${listedName(name)} ${id} ${date}${follows}: ${listedName(subject)}`;
    });
  return listed(git, args, entries, range, "There is no branch with a commit yet.");
}

/** What is stashed. */
export async function stashes(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const range = entryRange(args);
  const output = await git.read([
    "stash",
    "list",
    "-z",
    "--format=%gd: %gs",
    `--skip=${range.first - 1}`,
    `--max-count=${range.count + 1}`,
  ]);
  const entries = output.split("\0").filter((entry) => entry !== "");
  return listed(git, args, entries.map(listedName), range, "Nothing is stashed.");
}

/** What one stash holds. */
export async function showStash(git: Git, args: GitArgs, ref: string): Promise<AgentToolResult> {
  await requireCommit(git, ref);
  const which = [`${ref}^1`, ref, "--", ...git.pathspecs([])];
  const forbidden = await findForbidden(git, ["diff", ...namesOnly(git), ...which]);
  const command = ["diff", ...diffFlags(git), ...which, ...git.excluding(forbidden)];
  return shown(git, args, command, forbidden);
}
