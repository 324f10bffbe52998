import type { AgentToolResult } from "@gyre/agent";
import { type GitArgs, resolvePaths } from "./args.ts";
import { branches, MAX_GIT_ENTRIES, showStash, stashes, underWay } from "./read.ts";
import type { Git } from "./program.ts";
import { checkedRef, GitError, literal } from "./repository.ts";
import {
  changedFiles,
  changedNames,
  findCommit,
  DIFF_FLAGS,
  headCommit,
  notRun,
  pushTarget,
  refuseProtected,
  resolveRef,
  withWayBack,
} from "./targets.ts";
import { LOG_FORMAT, logLines } from "./text.ts";
import { fromSource, sanitize } from "@gyre/ai/text";
import { textResult } from "../text/text.ts";
import { listedName } from "../text/truncate.ts";

/** For a push, which waits for a server. */
export const PUSH_TIMEOUT_MS = 300_000;

export async function add(git: Git, args: GitArgs): Promise<AgentToolResult> {
  if (!args.all === !args.paths?.length) {
    throw new GitError("git add takes paths, or all: true for everything.");
  }
  const paths = args.all ? ["."] : await resolvePaths(git.env, args);
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
  // To see what has changed in there git would start itself with settings that are not inspected.
  const repositories = entries
    .split("\0")
    .filter((entry) => entry.startsWith("160000 "))
    .map((entry) => entry.slice(entry.indexOf("\t") + 1));
  await git.write([
    "add",
    ...how,
    "--",
    ...specs,
    ...repositories.map((name) => `:(top,literal,exclude)${name}`),
  ]);
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
      `${listedName(path)} goes through the filter "${filter}" of this repository's config, which is not run here. Ask the user to add it with git itself.`,
    );
  }
}

export async function commit(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const { message } = args;
  if (message === undefined) throw new GitError("git commit takes a message.");
  const skipped = args.all ? await stage(git, ["."], ["--update"]) : [];
  const doing = await underWay(git);
  const { exitCode } = await git.run(["diff", "--cached", "--quiet", ...DIFF_FLAGS], {
    answers: [0, 1],
  });
  if (exitCode === 0 && doing.length === 0) {
    throw new GitError("Nothing is staged, so there is nothing to commit. Use add first.");
  }
  await git.write(
    [
      "commit",
      "--quiet",
      "--no-verify",
      "--no-gpg-sign",
      "--no-status",
      "--cleanup=whitespace",
      "--file=-",
    ],
    { input: message },
  );
  const made = await git.read(["log", "-1", "-z", LOG_FORMAT, "--date=short", "HEAD", "--"]);
  const id = (await headCommit(git)) ?? "";
  const notes = skipped.map((name) => `Left out: ${listedName(name)} is a repository of its own.`);
  return textResult([`Committed ${logLines(made).join("")}`, ...notes].join("\n"), { commit: id });
}

export async function branch(git: Git, args: GitArgs): Promise<AgentToolResult> {
  if (args.name === undefined) return branches(git, args);
  const name = checkedRef(args.name);
  if (!args.delete) {
    if (args.force) throw new GitError("git branch takes force only together with delete.");
    const from = args.ref === undefined ? [] : [checkedRef(args.ref)];
    await git.write(["branch", "--no-track", "--", name, ...from]);
    return textResult(`The branch ${listedName(name)} is made. Go to it with checkout.`);
  }
  const tip = await findCommit(git, `refs/heads/${name}`);
  if (!args.force) {
    await git.write(["branch", "--delete", "--quiet", "--", name]);
    return textResult(`The branch ${listedName(name)} is deleted. It was at ${tip}.`);
  }
  await git.write(["branch", "-D", "--quiet", "--", name]);
  return withWayBack(`The branch ${listedName(name)} is deleted. It was at ${tip}.`, {
    action: "branch",
    name,
    ref: tip,
  });
}

export async function checkout(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const { create } = args;
  const ref = args.ref === undefined ? undefined : checkedRef(args.ref);
  const paths = await resolvePaths(git.env, args);
  if (paths.length > 0) {
    if (create !== undefined) throw new GitError("git checkout takes create or paths, not both.");
    return checkoutPaths(git, args, ref, paths);
  }
  if (ref === undefined && create === undefined) {
    throw new GitError("git checkout takes a ref to go to, a branch to create, or paths.");
  }
  await refuseProtected(git, await changedFiles(git, args, paths));
  await git.write([
    "checkout",
    "--quiet",
    "--no-guess",
    "--no-recurse-submodules",
    // Files that are ignored are of value, too.
    "--no-overwrite-ignore",
    ...(create === undefined ? [] : ["--no-track", "-b", checkedRef(create)]),
    ...(ref === undefined ? [] : [ref]),
    "--",
  ]);
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
  await refuseProtected(git, await changedFiles(git, args, paths));
  await git.write([
    "checkout",
    "--quiet",
    "--no-recurse-submodules",
    ...(ref === undefined ? [] : [ref]),
    "--",
    ...paths.map(literal),
  ]);
  const from = ref === undefined ? "what is staged" : ref;
  return textResult(`Put back to ${from}: ${paths.join(", ")}.${notRun(git)}`);
}

export async function reset(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const { mode = "mixed" } = args;
  const paths = await resolvePaths(git.env, args);
  const ref = checkedRef(args.ref ?? "HEAD");
  if (paths.length > 0) {
    if (args.mode !== undefined) throw new GitError("git reset takes mode or paths, not both.");
    const hasCommit = (await headCommit(git)) !== undefined;
    await git.write(
      hasCommit || args.ref !== undefined
        ? ["reset", "--quiet", ref, "--", ...paths.map(literal)]
        : ["rm", "--cached", "-r", "--quiet", "--ignore-unmatch", "--", ...paths.map(literal)],
    );
    return textResult(`No longer staged: ${paths.join(", ")}. The files are as they were.`);
  }
  const to = await findCommit(git, ref);
  const before = await headCommit(git);
  if (mode !== "hard") {
    await git.write(["reset", `--${mode}`, "--quiet", to, "--"]);
    const was = before === undefined ? "" : ` It was at ${before}.`;
    return textResult(`HEAD is now at ${to}; the files are as they were.${was}`);
  }
  await refuseProtected(git, await changedFiles(git, args, paths));
  await git.write(["reset", "--hard", "--quiet", "--no-recurse-submodules", to, "--"]);
  const text = `HEAD and all files are now at ${to}. Changes that were not committed are gone.${notRun(git)}`;
  if (before === undefined || before === to) return textResult(text);
  return withWayBack(`${text} HEAD was at ${before}.`, {
    action: "reset",
    mode: "hard",
    ref: before,
  });
}

export async function clean(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const paths = await resolvePaths(git.env, args);
  const doomed = await changedFiles(git, args, paths);
  if (doomed.length === 0) return textResult("There is nothing to remove.");
  await refuseProtected(git, doomed);
  await git.write(["clean", "-f", "-d", "--quiet", "--", ...paths.map(literal)]);
  const names = doomed.slice(0, MAX_GIT_ENTRIES).map(listedName);
  const more = doomed.length - names.length;
  const text = [
    `Removed ${doomed.length} untracked files. Ignored files were left.`,
    ...names,
    ...(more > 0 ? [`[${more} more.]`] : []),
  ];
  return textResult(text.join("\n"));
}

export async function push(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const redirects = git.pushRedirects();
  if (redirects.length > 0) {
    throw new GitError(
      `The repository's config sets ${redirects.map(listedName).join(", ")}, so a push may not go where it says, and is not made. Ask the user to look at that.`,
    );
  }
  const { remote, branch: name, urls } = await pushTarget(git, args);
  const known = await resolveRef(git, `refs/remotes/${remote}/${name}^{commit}`);
  const { stdout } = await git.write(
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
    { network: true, timeoutMs: PUSH_TIMEOUT_MS },
  );
  const output = fromSource({ kind: "command", name: "git push" }, sanitize(stdout.head).trimEnd());
  const text = [`Pushed ${listedName(name)} to ${urls.join(", ")}.`, output];
  if (!args.force) return textResult(text);
  const before = known === undefined ? "is not known" : `was at ${known} when last seen`;
  return textResult([...text, `The branch over there ${before}.`]);
}

export async function stash(git: Git, args: GitArgs): Promise<AgentToolResult> {
  const { operation = "list" } = args;
  const ref = checkedRef(args.ref ?? "stash@{0}");
  switch (operation) {
    case "list":
      return stashes(git, args);
    case "show":
      return showStash(git, args, ref);
    case "push": {
      await refuseProtected(git, await changedNames(git, ["HEAD"]));
      const before = await resolveRef(git, "refs/stash");
      const message = args.message === undefined ? [] : [`--message=${args.message}`];
      await git.write([
        "stash",
        "push",
        "--quiet",
        ...(args.all ? ["--include-untracked"] : []),
        ...message,
      ]);
      const made = await resolveRef(git, "refs/stash");
      return textResult(
        made === undefined || made === before
          ? "There was nothing to stash."
          : `Stashed as stash@{0} (${made}). Get it back with operation "pop".`,
      );
    }
    case "apply":
    case "pop": {
      const id = await findCommit(git, ref);
      const untracked = await resolveRef(git, `${id}^3`, [0, 1, 128]);
      const kept =
        untracked === undefined
          ? ""
          : await git.read(["ls-tree", "-r", "-z", "--name-only", "--full-tree", untracked]);
      await refuseProtected(git, [
        ...(await changedNames(git, [`${id}^1`, id])),
        ...kept.split("\0").filter((name) => name !== ""),
      ]);
      await git.write(["stash", operation, "--quiet", ref]);
      return textResult(`The stash ${ref} (${id}) is applied.${notRun(git)}`);
    }
    case "drop": {
      const id = await findCommit(git, ref);
      await git.write(["stash", "drop", "--quiet", ref]);
      return withWayBack(`The stash ${ref} is dropped. It was ${id}.`, {
        action: "stash",
        operation: "apply",
        ref: id,
      });
    }
  }
}
