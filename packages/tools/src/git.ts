import { access as exists } from "node:fs/promises";
import { join } from "node:path";
import { type AgentToolResult, defineTool } from "@gyre/agent";
import { type InferArguments, validateToolArguments } from "@gyre/ai";
import type { Access, GuardedTool } from "./access.ts";
import type { ToolEnv } from "./env.ts";
import { checkedRef, Git, GitError, type GitOptions, gitPath, literal } from "./git-program.ts";
import { restoreSnapshot, type Snapshot, SNAPSHOT_PREFIX, takeSnapshot } from "./git-snapshot.ts";
import { blameLines, LOG_FORMAT, logLines, parseStatus, statusText } from "./git-text.ts";
import { fromSource } from "./provenance.ts";
import { sanitise } from "./sanitise.ts";
import { textResult } from "./text.ts";
import { type LineLimits, linesWithin, listedName } from "./truncate.ts";
import { PathError } from "./workspace.ts";

/** Lines of a diff, a commit or a file that one call shows. */
export const MAX_GIT_LINES = 2_000;
export const MAX_GIT_BYTES: number = 50 * 1024;
export const MAX_GIT_LINE_CHARS = 2_000;
/** Commits of a log, branches of a list, stashes. */
export const DEFAULT_GIT_ENTRIES = 30;
export const MAX_GIT_ENTRIES = 300;
/** Lines of a file that one call of blame shows. */
export const MAX_BLAME_LINES = 500;
/** For a push, which waits for a server. */
export const PUSH_TIMEOUT_MS = 300_000;
/** Paths that a person is shown before they approve; the others are counted. */
const MAX_TARGETS = 200;
const MAX_CONTEXT_LINES = 100;

const LIMITS: LineLimits = {
  maxLines: MAX_GIT_LINES,
  maxBytes: MAX_GIT_BYTES,
  maxLineChars: MAX_GIT_LINE_CHARS,
};

/** For all that shows changes: nothing is run for it, and it looks the same everywhere. */
const DIFF_FLAGS = [
  "--no-ext-diff",
  "--no-textconv",
  "--no-color",
  "--submodule=short",
  "--ignore-submodules=dirty",
  "--src-prefix=a/",
  "--dst-prefix=b/",
];

const PARAMETERS = {
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
      maximum: MAX_CONTEXT_LINES,
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

type GitArgs = InferArguments<typeof PARAMETERS>;
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

/**
 * git without a shell, and without anything that the repository would have it run. What
 * cannot be taken back is told as destructive, and a snapshot is taken before it.
 */
export function gitTool(env: ToolEnv, options: GitOptions = {}): GuardedTool {
  const tool = defineTool({
    name: "git",
    label: "Git",
    description:
      "Works with the git repository of the workspace: status, diff, log, blame, show, add, commit, branch, checkout, reset, clean, push, stash. " +
      "Use it rather than a shell. Hooks, filters, aliases and signing are not run. Before anything that cannot be undone all files are kept in a snapshot.",
    parameters: PARAMETERS,
    async execute(_id, args, signal) {
      checkArgs(args);
      const git = await Git.open(env, options, signal);
      return run(git, args);
    },
  });
  return {
    ...tool,
    async access(given) {
      const checked = await validateToolArguments({ name: "git", parameters: PARAMETERS }, given);
      if (!checked.ok) throw new Error(checked.error);
      checkArgs(checked.value);
      return accessOf(env, options, checked.value);
    },
  };
}

function checkArgs(args: GitArgs): void {
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

// What a call would do.

async function accessOf(env: ToolEnv, options: GitOptions, args: GitArgs): Promise<Access> {
  const paths = await pathsOf(env, args);
  const summary = sanitise(commandLine(args, paths), { keepNewlines: false, exact: true });
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
      const count = `${changed.length.toLocaleString("en-US")} file${changed.length === 1 ? "" : "s"}`;
      return {
        kind: "write",
        targets: shown.length > 0 ? shown : targets,
        summary: `${summary} (${count} would change)`,
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

/** The call as somebody would type it. */
function commandLine(args: GitArgs, paths: readonly string[]): string {
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
    args.message && JSON.stringify(args.message),
    args.ref,
    args.to,
    paths.length > 0 && `-- ${paths.join(" ")}`,
  ];
  return words.filter((word) => word).join(" ");
}

async function pathsOf(env: ToolEnv, { paths = [] }: GitArgs): Promise<string[]> {
  return Promise.all(paths.map((path) => gitPath(env, path)));
}

// What only looks.

async function status(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const paths = await pathsOf(git.env, args);
  const output = await git.read([
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    "--untracked-files=all",
    "--ignore-submodules=dirty",
    "--",
    ...paths.map(literal),
  ]);
  const parsed = parseStatus(output);
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

async function underWay(git: Git): Promise<string[]> {
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

async function diff(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const { ref, to, staged, stat, context } = args;
  if (to !== undefined && ref === undefined) {
    throw new GitError("git diff takes `to` only together with `ref`.", null);
  }
  const paths = await pathsOf(git.env, args);
  return shown(git, args, [
    "diff",
    ...DIFF_FLAGS,
    ...(staged ? ["--cached"] : []),
    ...(stat ? ["--stat"] : []),
    ...(context === undefined ? [] : [`--unified=${context}`]),
    ...(ref === undefined ? [] : [checkedRef(ref)]),
    ...(to === undefined ? [] : [checkedRef(to)]),
    "--",
    ...paths.map(literal),
  ]);
}

async function show(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const ref = checkedRef(args.ref ?? "HEAD");
  const [path, ...others] = await pathsOf(git.env, args);
  if (others.length > 0) throw new GitError("git show takes one path at a time.", null);
  if (path !== undefined) {
    return shown(git, args, ["cat-file", "-p", path === "." ? `${ref}^{tree}` : `${ref}:${path}`]);
  }
  return shown(git, args, [
    "show",
    ...DIFF_FLAGS,
    "--no-show-signature",
    "--format=medium",
    args.stat ? "--stat" : "--patch",
    ref,
    "--",
  ]);
}

/** Output as it is, from a line on, with how to go on. */
async function shown(
  git: Git,
  args: GitArgs,
  command: readonly string[],
): Promise<AgentToolResult> {
  const first = args.offset ?? 1;
  const { lines, total, next } = await git.show(command, first, LIMITS);
  if (lines.length === 0) {
    return textResult(
      total === 0
        ? "Nothing to show."
        : `There are only ${total} lines; offset ${first} is beyond them.`,
    );
  }
  const isBinary = lines.some((line) => line.includes("\0"));
  if (isBinary) return textResult("It is binary, and not shown.");
  const name = commandLine(args, args.paths ?? []);
  const text = fromSource({ kind: "command", name }, lines.join("\n"));
  if (next === undefined) return textResult(text, { lines: total });
  const note = `[Lines ${first} to ${next - 1} of ${total.toLocaleString("en-US")}. Go on with offset=${next}, or ask for less: single paths${args.action === "diff" || args.action === "show" ? ", or stat" : ""}.]`;
  return textResult(`${text}\n${note}`, { lines: total, next });
}

function entryRange({ offset = 1, limit = DEFAULT_GIT_ENTRIES }: GitArgs): {
  first: number;
  count: number;
} {
  return { first: offset, count: Math.min(limit, MAX_GIT_ENTRIES) };
}

/** Entries of a list, of which one more than wanted was asked for. */
function listed(
  args: GitArgs,
  entries: readonly string[],
  range: { first: number; count: number },
  none: string,
): AgentToolResult {
  if (entries.length === 0) return textResult(none);
  const fitting = linesWithin(entries.slice(0, range.count), MAX_GIT_BYTES);
  const text = fromSource({ kind: "command", name: commandLine(args, []) }, fitting.join("\n"));
  if (entries.length <= fitting.length) return textResult(text);
  return textResult(
    `${text}\n[There are more. Go on with offset=${range.first + fitting.length}.]`,
  );
}

async function log(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const range = entryRange(args);
  const paths = await pathsOf(git.env, args);
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
    ...paths.map(literal),
  ]);
  return listed(args, logLines(output), range, "No commit fits.");
}

async function blame(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const [path, ...others] = await pathsOf(git.env, args);
  if (path === undefined || others.length > 0) {
    throw new GitError("git blame takes one path.", null);
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
  return listed(args, blameLines(output), { first, count }, "The file is empty.");
}

// What changes something.

async function add(git: Git, args: GitArgs): Promise<AgentToolResult> {
  if (!args.all === !args.paths?.length) {
    throw new GitError("git add takes paths, or all: true for everything.", null);
  }
  const paths = args.all ? ["."] : await pathsOf(git.env, args);
  const skipped = await stage(git, paths, ["--all"]);
  const staged = await git.read([
    "diff",
    "--cached",
    "--name-status",
    ...DIFF_FLAGS,
    "--no-renames",
    "-z",
    "--",
    ...paths.map(literal),
  ]);
  const fields = staged.split("\0").filter((field) => field !== "");
  const names: string[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    names.push(`${fields[index] ?? ""} ${listedName(fields[index + 1] ?? "")}`);
  }
  const fitting = names.slice(0, MAX_GIT_ENTRIES);
  const lines = [
    names.length === 0 ? "Nothing is staged there: nothing has changed." : "Staged there now:",
    ...fitting,
    ...(names.length > fitting.length
      ? [`[${names.length - fitting.length} more. Look at diff with staged and stat.]`]
      : []),
    ...skipped.map((name) => `Not added: ${listedName(name)} is a repository of its own.`),
  ];
  return textResult(lines.join("\n"), { staged: names.length });
}

/** Stages what has changed at paths; gives the repositories in there, which are left alone. */
async function stage(
  git: Git,
  paths: readonly string[],
  how: readonly string[],
): Promise<string[]> {
  const specs = paths.map(literal);
  await refuseFiltered(git, specs);
  const entries = await git.read(["ls-files", "--stage", "-z", "--", ...specs]);
  // To see what has changed in there git would start itself with settings that nobody has looked at.
  const repositories = entries
    .split("\0")
    .filter((entry) => entry.startsWith("160000 "))
    .map((entry) => entry.slice(entry.indexOf("\t") + 1));
  await git.run(
    ["add", ...how, "--", ...specs, ...repositories.map((name) => `:(top,literal,exclude)${name}`)],
    { write: true },
  );
  return repositories;
}

/** A filter that is not run would make other content of a file than its repository expects. */
async function refuseFiltered(git: Git, specs: readonly string[]): Promise<void> {
  if (git.filters.length === 0) return;
  const names = await git.read([
    "ls-files",
    "-z",
    "--modified",
    "--others",
    "--exclude-standard",
    "--",
    ...specs,
  ]);
  if (names === "") return;
  const attributes = await git.read(["check-attr", "-z", "--stdin", "filter"], { input: names });
  const fields = attributes.split("\0");
  for (let index = 0; index + 2 < fields.length; index += 3) {
    const [path = "", , filter = ""] = fields.slice(index, index + 3);
    if (!git.filters.includes(filter)) continue;
    throw new GitError(
      `${listedName(path)} goes through the filter "${filter}" of this repository's config, which is not run here. Somebody has to add it with git itself.`,
      null,
    );
  }
}

async function commit(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const { message } = args;
  if (message === undefined) throw new GitError("git commit takes a message.", null);
  const skipped = args.all ? await stage(git, ["."], ["--update"]) : [];
  const doing = await underWay(git);
  const { exitCode } = await git.run(["diff", "--cached", "--quiet", ...DIFF_FLAGS], {
    answers: [0, 1],
  });
  if (exitCode === 0 && doing.length === 0) {
    throw new GitError("Nothing is staged, so there is nothing to commit. Use add first.", null);
  }
  await git.run(
    [
      "commit",
      "--quiet",
      "--no-verify",
      "--no-gpg-sign",
      "--no-status",
      "--cleanup=whitespace",
      "--file=-",
    ],
    { write: true, input: message },
  );
  const made = await git.read(["log", "-1", "-z", LOG_FORMAT, "--date=short", "HEAD", "--"]);
  const id = (await headCommit(git)) ?? "";
  const notes = skipped.map((name) => `Left out: ${listedName(name)} is a repository of its own.`);
  return textResult([`Committed ${logLines(made).join("")}`, ...notes].join("\n"), { commit: id });
}

async function branch(git: Git, args: GitArgs): Promise<AgentToolResult> {
  if (args.name === undefined) return branches(git, args);
  const name = checkedRef(args.name);
  if (!args.delete) {
    if (args.force) throw new GitError("git branch takes force only together with delete.", null);
    const from = args.ref === undefined ? [] : [checkedRef(args.ref)];
    await git.run(["branch", "--no-track", "--", name, ...from], { write: true });
    return textResult(`The branch ${listedName(name)} is made. Go to it with checkout.`);
  }
  const tip = await commitOf(git, `refs/heads/${name}`);
  if (!args.force) {
    await git.run(["branch", "--delete", "--quiet", "--", name], { write: true });
    return textResult(`The branch ${listedName(name)} is deleted. It was at ${tip}.`);
  }
  const snapshot = await takeSnapshot(git, { reason: `deleting branch ${name}`, keep: [tip] });
  await git.run(["branch", "-D", "--quiet", "--", name], { write: true });
  return undoable(`The branch ${listedName(name)} is deleted. It was at ${tip}.`, snapshot, [
    { action: "branch", name, ref: tip },
  ]);
}

async function branches(git: Git, args: GitArgs): Promise<AgentToolResult> {
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
  return listed(args, entries, range, "There is no branch with a commit yet.");
}

async function checkout(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const { create } = args;
  const ref = args.ref === undefined ? undefined : checkedRef(args.ref);
  const paths = await pathsOf(git.env, args);
  if (paths.length > 0) {
    if (create !== undefined)
      throw new GitError("git checkout takes create or paths, not both.", null);
    return checkoutPaths(git, args, ref, paths);
  }
  if (ref === undefined && create === undefined) {
    throw new GitError("git checkout takes a ref to go to, a branch to create, or paths.", null);
  }
  await refuseProtected(git, await changedFiles(git, args, paths));
  await git.run(
    [
      "checkout",
      "--quiet",
      "--no-guess",
      "--no-recurse-submodules",
      // Files that are ignored are somebody's, too.
      "--no-overwrite-ignore",
      ...(create === undefined ? [] : ["--no-track", "-b", checkedRef(create)]),
      ...(ref === undefined ? [] : [ref]),
      "--",
    ],
    { write: true },
  );
  const head = await git.line(["symbolic-ref", "--quiet", "--short", "HEAD"]);
  const at = head === undefined ? "a detached HEAD" : `branch ${listedName(head)}`;
  return textResult(`Now on ${at}.${notRun(git)}`);
}

async function checkoutPaths(
  git: Git,
  args: GitArgs,
  ref: string | undefined,
  paths: readonly string[],
): Promise<AgentToolResult> {
  const changed = await changedFiles(git, args, paths);
  await refuseProtected(git, changed);
  const snapshot = await takeSnapshot(git, { reason: commandLine(args, paths) });
  if (ref?.startsWith(SNAPSHOT_PREFIX)) {
    const whole = paths.includes(".");
    const names = await restoreSnapshot(git, ref, whole ? [] : paths);
    return undoable(`Put back from the snapshot: ${names.length} files.`, snapshot, [
      { action: "checkout", ref: snapshot.ref, paths: [...paths] },
    ]);
  }
  await git.run(
    [
      "checkout",
      "--quiet",
      "--no-recurse-submodules",
      ...(ref === undefined ? [] : [ref]),
      "--",
      ...paths.map(literal),
    ],
    { write: true },
  );
  const from = ref === undefined ? "what is staged" : ref;
  return undoable(`Put back to ${from}: ${paths.join(", ")}.${notRun(git)}`, snapshot, [
    { action: "checkout", ref: snapshot.ref, paths: [...paths] },
  ]);
}

async function reset(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const { mode = "mixed" } = args;
  const paths = await pathsOf(git.env, args);
  const ref = checkedRef(args.ref ?? "HEAD");
  if (paths.length > 0) {
    if (args.mode !== undefined)
      throw new GitError("git reset takes mode or paths, not both.", null);
    const hasCommit = (await headCommit(git)) !== undefined;
    await git.run(
      hasCommit || args.ref !== undefined
        ? ["reset", "--quiet", ref, "--", ...paths.map(literal)]
        : ["rm", "--cached", "-r", "--quiet", "--ignore-unmatch", "--", ...paths.map(literal)],
      { write: true },
    );
    return textResult(`No longer staged: ${paths.join(", ")}. The files are as they were.`);
  }
  const to = await commitOf(git, ref);
  const before = await headCommit(git);
  if (mode !== "hard") {
    await git.run(["reset", `--${mode}`, "--quiet", to, "--"], { write: true });
    const was = before === undefined ? "" : ` It was at ${before}.`;
    return textResult(`HEAD is now at ${to}; the files are as they were.${was}`);
  }
  await refuseProtected(git, await changedFiles(git, args, paths));
  const snapshot = await takeSnapshot(git, { reason: commandLine(args, paths) });
  await git.run(["reset", "--hard", "--quiet", "--no-recurse-submodules", to, "--"], {
    write: true,
  });
  return undoable(`HEAD and all files are now at ${to}.${notRun(git)}`, snapshot, [
    ...(before === undefined || before === to
      ? []
      : [{ action: "reset" as const, mode: "hard" as const, ref: before }]),
    { action: "checkout", ref: snapshot.ref, paths: ["."] },
  ]);
}

async function clean(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const paths = await pathsOf(git.env, args);
  const doomed = await changedFiles(git, args, paths);
  if (doomed.length === 0) return textResult("There is nothing to remove.");
  await refuseProtected(git, doomed);
  const snapshot = await takeSnapshot(git, { reason: commandLine(args, paths) });
  await git.run(["clean", "-f", "-d", "--quiet", "--", ...paths.map(literal)], { write: true });
  const names = doomed.slice(0, MAX_GIT_ENTRIES).map(listedName);
  const more = doomed.length - names.length;
  const text = [
    `Removed ${doomed.length} untracked files. Ignored files were left.`,
    ...names,
    ...(more > 0 ? [`[${more} more; all of them are in the snapshot.]`] : []),
  ];
  return undoable(text.join("\n"), snapshot, [
    { action: "checkout", ref: snapshot.ref, paths: paths.length > 0 ? paths : ["."] },
  ]);
}

interface PushTarget {
  remote: string;
  branch: string;
  /** Where the remote is, without passwords. */
  urls: string[];
}

async function pushTarget(git: Git, args: GitArgs): Promise<PushTarget> {
  const current = await git.line(["symbolic-ref", "--quiet", "--short", "HEAD"]);
  const name = args.name ?? current;
  if (name === undefined) {
    throw new GitError("HEAD is detached: say which branch to push, by name.", null);
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
        sanitise(url.replace(/\/\/[^/@]*@/, "//"), { keepNewlines: false, exact: true }),
      ),
  };
}

async function push(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const redirects = git.pushRedirects();
  if (redirects.length > 0) {
    throw new GitError(
      `The repository's config sets ${redirects.map(listedName).join(", ")}, so a push may not go where it says, and is not made. Somebody has to look at that.`,
      null,
    );
  }
  const { remote, branch: name, urls } = await pushTarget(git, args);
  const known = await git.line([
    "rev-parse",
    "--quiet",
    "--verify",
    `refs/remotes/${remote}/${name}^{commit}`,
  ]);
  const snapshot = args.force
    ? await takeSnapshot(git, {
        reason: `push --force to ${remote}`,
        keep: known === undefined ? [] : [known],
      })
    : undefined;
  const { stdout } = await git.run(
    [
      "push",
      "--porcelain",
      "--no-verify",
      "--no-signed",
      "--recurse-submodules=no",
      "--receive-pack=git-receive-pack",
      ...(args.force ? ["--force"] : []),
      "--",
      remote,
      `refs/heads/${name}:refs/heads/${name}`,
    ],
    { write: true, network: true, timeoutMs: PUSH_TIMEOUT_MS },
  );
  const said = fromSource({ kind: "command", name: "git push" }, sanitise(stdout.head).trimEnd());
  const text = `Pushed ${listedName(name)} to ${urls.join(", ")}.\n${said}`;
  if (!snapshot) return textResult(text);
  const before = known === undefined ? "is not known" : `was at ${known} when last seen`;
  return undoable(`${text}\nThe branch over there ${before}.`, snapshot, []);
}

async function stash(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const { operation = "list" } = args;
  const ref = checkedRef(args.ref ?? "stash@{0}");
  switch (operation) {
    case "list": {
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
      return listed(args, entries.map(listedName), range, "Nothing is stashed.");
    }
    case "show":
      return shown(git, args, ["diff", ...DIFF_FLAGS, `${ref}^1`, ref, "--"]);
    case "push": {
      await refuseProtected(git, await changedNames(git, ["HEAD"]));
      const message = args.message === undefined ? [] : ["--message", args.message];
      await git.run(
        ["stash", "push", "--quiet", ...(args.all ? ["--include-untracked"] : []), ...message],
        { write: true },
      );
      const made = await git.line(["rev-parse", "--quiet", "--verify", "stash@{0}"]);
      return textResult(
        made === undefined
          ? "There was nothing to stash."
          : `Stashed as stash@{0} (${made}). Get it back with operation "pop".`,
      );
    }
    case "apply":
    case "pop": {
      const id = await commitOf(git, ref);
      const untracked = await git.line(["rev-parse", "--quiet", "--verify", `${id}^3`], {
        answers: [0, 1, 128],
      });
      const kept =
        untracked === undefined
          ? ""
          : await git.read(["ls-tree", "-r", "-z", "--name-only", "--full-tree", untracked]);
      await refuseProtected(git, [
        ...(await changedNames(git, [`${id}^1`, id])),
        ...kept.split("\0").filter((name) => name !== ""),
      ]);
      await git.run(["stash", operation, "--quiet", ref], { write: true });
      return textResult(`The stash ${ref} (${id}) is applied.${notRun(git)}`);
    }
    case "drop": {
      const id = await commitOf(git, ref);
      const snapshot = await takeSnapshot(git, { reason: `stash drop ${ref}`, keep: [id] });
      await git.run(["stash", "drop", "--quiet", ref], { write: true });
      return undoable(`The stash ${ref} is dropped. It was ${id}.`, snapshot, [
        { action: "stash", operation: "apply", ref: id },
      ]);
    }
  }
}

// What several of them need.

/** Files that a call would write or remove. */
async function changedFiles(git: Git, args: GitArgs, paths: readonly string[]): Promise<string[]> {
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
  const hasCommit = (await headCommit(git)) !== undefined;
  if (args.action === "checkout") {
    return hasCommit && ref !== undefined ? changedNames(git, ["HEAD", ref]) : [];
  }
  if (args.mode !== "hard" || !hasCommit) return [];
  return changedNames(git, [ref ?? "HEAD"]);
}

async function changedNames(
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
async function refuseProtected(git: Git, names: readonly string[]): Promise<void> {
  for (const name of names) {
    if (await isProtected(git, name)) {
      throw new GitError(
        `This would change ${listedName(name)}, which tools may not change. Somebody has to do it with git itself.`,
        null,
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

function headCommit(git: Git): Promise<string | undefined> {
  return git.line(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]);
}

async function commitOf(git: Git, ref: string): Promise<string> {
  const id = await git.line(["rev-parse", "--quiet", "--verify", `${ref}^{commit}`], {
    answers: [0, 1, 128],
  });
  if (id === undefined) throw new GitError(`There is no ${listedName(ref)}.`, null);
  return id;
}

function notRun({ filters }: Git): string {
  return filters.length === 0
    ? ""
    : ` The filters of this repository's config were not run: ${filters.map(listedName).join(", ")}.`;
}

/** What was done, and how to get back to what was before. */
function undoable(text: string, snapshot: Snapshot, back: readonly GitArgs[]): AgentToolResult {
  const steps = back.map((args) => `  ${JSON.stringify(args)}`);
  return textResult(
    [
      text,
      `All files that git does not ignore are kept as they were, in ${snapshot.ref}.`,
      ...(steps.length > 0 ? ["To get back, call git with:", ...steps] : []),
    ].join("\n"),
    { snapshot },
  );
}
