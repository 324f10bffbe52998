import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import type { Environment } from "../core/environment.ts";

const run = promisify(execFile);
/** Of a list of files. */
const MAX_OUTPUT_BYTES: number = 256 * 1024 * 1024;

/** What differs from the last commit: paths from the root, with a slash at the end of a folder. */
export interface Uncommitted {
  changed: readonly string[];
  /** What git ignores, whole folders as one. */
  ignored: readonly string[];
}

/** The git repository around a folder, and its worktrees. */
export class Repository {
  readonly root: string;
  /** The folder in it, with a slash at its end; empty where it is the root. */
  readonly below: string;
  readonly #env: Environment;

  private constructor(root: string, below: string, env: Environment) {
    this.root = root;
    this.below = below;
    this.#env = env;
  }

  /** Throws as git does, where there is none too. */
  static async find(folder: string, env: Environment): Promise<Repository> {
    const root = trim(await runGit(folder, env, "rev-parse", "--show-toplevel"));
    const below = trim(await runGit(folder, env, "rev-parse", "--show-prefix"));
    return new Repository(root, below, env);
  }

  async hasCommit(): Promise<boolean> {
    return this.#git("rev-parse", "--verify", "--quiet", "HEAD").then(
      () => true,
      () => false,
    );
  }

  /** Makes a worktree of the last commit, on a branch of this name or on none. */
  async addWorktree(folder: string, branch?: string): Promise<void> {
    await mkdir(dirname(folder), { recursive: true });
    const on = branch === undefined ? ["--detach"] : ["-b", branch];
    await this.#git("worktree", "add", ...on, folder);
  }

  /** Removes a worktree with all that is in it, also where git does not know it any more. */
  async removeWorktree(folder: string): Promise<void> {
    await this.#git("worktree", "remove", "--force", "--force", folder).catch(() => undefined);
    await rm(folder, { recursive: true, force: true });
    await this.#git("worktree", "prune");
  }

  async listUncommitted(): Promise<Uncommitted> {
    const output = await this.#git(
      "status",
      "--porcelain=v1",
      "-z",
      "--untracked-files=all",
      "--ignored=matching",
      "--no-renames",
      "--ignore-submodules=all",
    );
    const changed: string[] = [];
    const ignored: string[] = [];
    for (const line of output.split("\0")) {
      if (line === "") continue;
      (line.startsWith("!!") ? ignored : changed).push(line.slice("XY ".length));
    }
    return { changed, ignored };
  }

  #git(...args: string[]): Promise<string> {
    // No hook of the repository, and no program that watches files, runs for a copy.
    const quiet = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
    return runGit(this.root, this.#env, ...quiet, ...args);
  }
}

async function runGit(folder: string, env: Environment, ...args: string[]): Promise<string> {
  const options = { env: { ...env, LC_ALL: "C" }, maxBuffer: MAX_OUTPUT_BYTES };
  return (await run("git", ["-C", folder, ...args], options)).stdout;
}

function trim(output: string): string {
  return output.replace(/\r?\n$/, "");
}
