import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { cleanEnvironment } from "./agent.mjs";

/**
 * @typedef {import("./inputs.mjs").Environment} Environment
 * @typedef {{ tree: string, head: string }} Snapshot
 */

const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
/** Files that GitHub runs with the secrets of the repository as soon as they are pushed. */
const WORKFLOWS = /^\.github\/(?:workflows|actions)\//i;
const NO_OBJECT = "0".repeat(40);
const BOT = {
  name: "github-actions[bot]",
  email: "41898282+github-actions[bot]@users.noreply.github.com",
};

/**
 * The repository of the workspace, as git sees it through a folder of our own. What is in `.git` of the workspace could be changed by
 * what the model runs (hooks, filters, addresses), so after the model ran nothing is read from it but objects.
 */
export class Repository {
  #workspace;
  #folder;
  #env;
  #address;
  #token;

  /**
   * @param {{ workspace: string, folder: string, env: Environment, address: string, token: string }} options
   *   `folder`: for the git folder of our own; `address`: where the repository is fetched from and pushed to
   */
  constructor({ workspace, folder, env, address, token }) {
    this.#workspace = workspace;
    this.#folder = join(folder, "repository.git");
    this.#env = env;
    this.#address = address;
    this.#token = token;
  }

  /** Throws where the token lies in the workspace, for all that runs there to read. */
  async checkCredentials() {
    const { output } = await this.#inWorkspace(["config", "--local", "--includes", "--list", "-z"]);
    const found = output
      .split("\0")
      .map((entry) => entry.split("\n"))
      .find(
        ([name = "", ...value]) =>
          /^http\..*extraheader$/i.test(name) ||
          (/^(?:remote\..*\.(?:push)?url|url\.)/i.test(name) &&
            /:\/\/[^/@]*:[^/@]*@/.test(`${name}\n${value.join("\n")}`)),
      );
    if (found === undefined) return;
    throw new Error(
      `The checkout keeps a token in .git/config (${found[0]}), where everything that the model runs can read it. ` +
        "Write `persist-credentials: false` in the step actions/checkout.",
    );
  }

  /**
   * Puts the newest commit of a branch into the workspace.
   *
   * @param {string} branch
   */
  async checkOut(branch) {
    const ref = `refs/gyre/head`;
    const args = ["fetch", "--no-tags", "--no-recurse-submodules", "--depth=1", this.#address];
    await this.#inWorkspace([...args, `+refs/heads/${branch}:${ref}`], this.#credentials());
    await this.#inWorkspace(["checkout", "--detach", "--quiet", ref]);
  }

  /** What is there now: to be called before the model runs. */
  async open() {
    const head = (
      await this.#inWorkspace(["rev-parse", "--verify", "HEAD^{commit}"])
    ).output.trim();
    const place = (await this.#inWorkspace(["rev-parse", "--git-common-dir"])).output.trim();
    const common = resolve(this.#workspace, place);
    const format = (await this.#inWorkspace(["rev-parse", "--show-object-format"])).output.trim();
    await run(["init", "--quiet", "--bare", `--object-format=${format}`, this.#folder], {
      cwd: this.#workspace,
      env: this.#environment(),
    });
    mkdirSync(join(this.#folder, "objects/info"), { recursive: true });
    writeFileSync(join(this.#folder, "objects/info/alternates"), `${join(common, "objects")}\n`);
    const shallow = join(common, "shallow");
    if (existsSync(shallow)) copyFileSync(shallow, join(this.#folder, "shallow"));
    await this.#own(["read-tree", head]);
    return { head, tree: await this.#writeTree() };
  }

  /**
   * A commit with what has changed since, on top of what was there.
   *
   * @param {Snapshot} before
   * @param {string} message
   * @returns {Promise<{ commit: string | undefined, leftOut: string[] }>} no commit where there is nothing for it
   */
  async commit(before, message) {
    const after = await this.#writeTree();
    const { output } = await this.#own([
      "diff-tree",
      "-r",
      "-z",
      "--no-renames",
      before.tree,
      after,
    ]);
    const changes = parseChanges(output);
    const leftOut = changes.filter(({ path }) => WORKFLOWS.test(path)).map(({ path }) => path);
    const kept = changes.filter(({ path }) => !WORKFLOWS.test(path));
    if (kept.length === 0) return { commit: undefined, leftOut };
    await this.#own(["read-tree", before.head]);
    const lines = kept.map(({ mode, object, path }) => `${mode} ${object}\t${path}\0`).join("");
    await this.#own(["update-index", "-z", "--index-info"], { input: lines });
    const tree = (await this.#own(["write-tree"])).output.trim();
    const env = {
      GIT_AUTHOR_NAME: BOT.name,
      GIT_AUTHOR_EMAIL: BOT.email,
      GIT_COMMITTER_NAME: BOT.name,
      GIT_COMMITTER_EMAIL: BOT.email,
    };
    const made = await this.#own(["commit-tree", tree, "-p", before.head, "-F", "-"], {
      input: message,
      env,
    });
    return { commit: made.output.trim(), leftOut };
  }

  /**
   * @param {string} commit
   * @param {string} branch
   * @returns {Promise<string | undefined>} why it was refused
   */
  async push(commit, branch) {
    const target = `${commit}:refs/heads/${branch}`;
    const { code, errors } = await this.#own(["push", "--no-verify", this.#address, target], {
      env: this.#credentials(),
      mayFail: true,
    });
    return code === 0 ? undefined : errors;
  }

  async #writeTree() {
    await this.#own(["add", "--all"]);
    return (await this.#own(["write-tree"])).output.trim();
  }

  /**
   * @param {readonly string[]} args
   * @param {Record<string, string>} [more]
   */
  #inWorkspace(args, more = {}) {
    const env = { ...this.#environment(), ...more };
    const guards = [
      "-c",
      "safe.directory=*",
      "-c",
      "core.hooksPath=/dev/null",
      "-c",
      "core.fsmonitor=false",
    ];
    return run([...guards, ...args], { cwd: this.#workspace, env });
  }

  /**
   * @param {readonly string[]} args
   * @param {{ input?: string, env?: Record<string, string>, mayFail?: boolean }} [options]
   */
  #own(args, { input, env = {}, mayFail = false } = {}) {
    const place = { GIT_DIR: this.#folder, GIT_WORK_TREE: this.#workspace };
    return run(args, {
      cwd: this.#workspace,
      env: { ...this.#environment(), ...place, ...env },
      ...(input !== undefined && { input }),
      mayFail,
    });
  }

  #environment() {
    return cleanEnvironment(this.#env, {
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: process.platform === "win32" ? "NUL" : "/dev/null",
      GIT_TERMINAL_PROMPT: "0",
      LC_ALL: "C",
    });
  }

  /** In the environment of the one command that needs it, and so in no list of processes. */
  #credentials() {
    const basic = Buffer.from(`x-access-token:${this.#token}`).toString("base64");
    return {
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: `http.${this.#address}.extraheader`,
      GIT_CONFIG_VALUE_0: `AUTHORIZATION: basic ${basic}`,
    };
  }
}

/**
 * @param {string} output of `git diff-tree -r -z`
 * @returns {{ mode: string, object: string, path: string }[]} what is to be in the index; the mode 0 takes it out
 */
function parseChanges(output) {
  const parts = output.split("\0");
  const changes = [];
  for (let nth = 0; nth + 1 < parts.length; nth += 2) {
    const [, mode = "", , object = "", status] = (parts[nth] ?? "").split(" ");
    const path = parts[nth + 1] ?? "";
    changes.push(status === "D" ? { mode: "0", object: NO_OBJECT, path } : { mode, object, path });
  }
  return changes;
}

/**
 * Runs git, without a shell. Throws where it fails, unless it may.
 *
 * @param {readonly string[]} args
 * @param {{ cwd: string, env: Record<string, string>, input?: string, mayFail?: boolean }} options
 * @returns {Promise<{ code: number, output: string, errors: string }>}
 */
function run(args, { cwd, env, input = "", mayFail = false }) {
  return new Promise((settle, fail) => {
    const options = { cwd, env, maxBuffer: MAX_OUTPUT_BYTES };
    const child = execFile("git", [...args], options, (error, output, errors) => {
      const code = error === null ? 0 : Number(error.code ?? 1) || 1;
      const problem = errors.trim();
      if (error && !mayFail)
        fail(
          new Error(
            `git ${args.find((word) => !/^-|=/.test(word))} failed: ${problem || error.message}`,
          ),
        );
      else settle({ code, output, errors: problem });
    });
    // A command that reads nothing may have ended before.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}
