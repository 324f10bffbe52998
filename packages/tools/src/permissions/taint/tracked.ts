import { readFile, stat } from "node:fs/promises";
import { isAbsolute, join, normalize, resolve, sep } from "node:path";
import type { ToolEnv } from "../../contract/env.ts";
import { Git } from "../../git/program.ts";
import { walk } from "../../workspace/walk.ts";
import type { CallName } from "./call-names.ts";

/** For one search; what is not found by then counts as not there. */
export const SEARCH_MS = 2_000;
/** Files with a name in them of which the age is looked at. */
const MAX_FILES = 50;
/** Of a file in a folder without git. */
const MAX_FILE_BYTES = 1_048_576;
/** The clock of a file system is behind that of programs by some milliseconds, and some have whole seconds alone. */
const CLOCK_SLACK_MS = 2_000;
/** Answers that are remembered. */
const MAX_ANSWERS = 10_000;

/** Where the code of others is, tracked or not. */
const FOREIGN_FOLDERS = [
  ...["node_modules", "bower_components", "jspm_packages", "vendor", "third_party"],
  ...["site-packages", "dist-packages", ".venv", "venv", ".tox", "Pods", "Carthage"],
];
const FOREIGN = new RegExp(
  `(?:^|/)(?:${FOREIGN_FOLDERS.map((name) => name.replaceAll(".", "\\.")).join("|")})(?:/|$)`,
);

export interface TrackedOptions {
  env: ToolEnv;
  /** Files that are younger may have been written by the agent, in milliseconds. */
  since: number;
  /** The commit that the session began with, where that is known. */
  commit?: string | undefined;
}

/** What the files of the project say that were there before the agent was. */
export class TrackedFiles {
  readonly #options: TrackedOptions;
  readonly #since: number;
  readonly #answers = new Map<string, Promise<boolean>>();
  #git: Promise<Git | undefined> | undefined;
  #commit: Promise<string | undefined> | undefined;

  constructor(options: TrackedOptions) {
    this.#options = options;
    this.#since = options.since - CLOCK_SLACK_MS;
  }

  /** The commit that counts, from the first call on. */
  get commit(): Promise<string | undefined> {
    this.#commit ??= this.#findCommit();
    return this.#commit;
  }

  /** Whether a file of the project has a name in it, or is called so. */
  has(name: CallName): Promise<boolean> {
    return this.#remember(`${name.what} ${name.text}`, () => this.#search(name));
  }

  /** Whether others may have written a file: it is not tracked, or belongs to a dependency. */
  async isForeign(path: string): Promise<boolean> {
    if (isForeignPath(path)) return true;
    const { root, folders } = this.#options.env.workspace;
    if (isAbsolute(path) || path.startsWith("..")) {
      const absolute = resolve(root, path);
      // The user has added it.
      const isAdded = folders.some((folder) => absolute.startsWith(folder + sep));
      return !isAdded || !(await this.#isOld(absolute));
    }
    return this.#remember(`file ${path}`, async () => !(await this.#isTracked(path)));
  }

  #remember(key: string, find: () => Promise<boolean>): Promise<boolean> {
    const known = this.#answers.get(key);
    if (known) return known;
    const [oldest] = this.#answers.size < MAX_ANSWERS ? [] : this.#answers.keys();
    if (oldest !== undefined) this.#answers.delete(oldest);
    const answer = find();
    this.#answers.set(key, answer);
    // A search that failed is no answer.
    answer.catch(() => this.#answers.delete(key));
    return answer;
  }

  async #search(name: CallName): Promise<boolean> {
    const git = await this.#open();
    // Git takes each line for a text of its own.
    if (/[\n\0]/.test(name.text)) return false;
    if (!git) return this.#searchPlain(name);
    if (name.what === "path" && (await this.#isUsers(git, name.text))) return true;
    if (name.what === "name" && (await this.#isRef(git, name.text))) return true;
    const isHost = name.what === "address";
    const grep = ["grep", "--full-name", "-lzIFw", ...(isHost ? ["-i"] : []), "-e", name.text];
    const places = ["--", ...git.pathspecs([]), ...EXCLUDED];
    const found = await this.#ask(git, [...grep, ...places]);
    const tree = splitZero(found).map((path) => join(git.tree, path));
    if (await this.#isAnyOld(tree)) return true;
    const commit = await this.commit;
    return commit !== undefined && (await this.#ask(git, [...grep, commit, ...places])) !== "";
  }

  /** A file that is tracked, or was there before and is not ignored. */
  async #isUsers(git: Git, path: string): Promise<boolean> {
    if (isAbsolute(path) || path.startsWith("~") || path.startsWith("..") || isForeignPath(path)) {
      return false;
    }
    if (await this.#isTracked(path)) return true;
    if (!(await this.#isOld(join(this.#options.env.workspace.root, path)))) return false;
    return (await this.#ask(git, ["check-ignore", "-z", "--", path], path)) === "";
  }

  /** A branch, a tag or a remote of the repository. */
  async #isRef(git: Git, name: string): Promise<boolean> {
    if (name === "HEAD" || git.config.has(`remote.${name}.url`)) return true;
    if (!/^[\w./-]+$/.test(name)) return false;
    const refs = ["heads", "tags", "remotes", "remotes/*"].map((kind) => `refs/${kind}/${name}`);
    return (await this.#ask(git, ["for-each-ref", "--count=1", "--format=x", ...refs])) !== "";
  }

  async #isTracked(path: string): Promise<boolean> {
    const git = await this.#open();
    const place = normalize(path);
    if (!git) return this.#isOld(join(this.#options.env.workspace.root, place));
    const commit = await this.commit;
    if (commit !== undefined) {
      const list = ["ls-tree", "--full-tree", "--name-only", "-z", commit, "--", git.inTree(place)];
      if ((await this.#ask(git, list)) !== "") return true;
    }
    const list = ["ls-files", "--full-name", "-z", "--", ...git.pathspecs([place])];
    const [first] = splitZero(await this.#ask(git, list));
    return first !== undefined && this.#isOld(join(git.tree, first));
  }

  /** A folder without git has the files that were there before. */
  async #searchPlain({ what, text }: CallName): Promise<boolean> {
    const { workspace } = this.#options.env;
    const signal = AbortSignal.timeout(SEARCH_MS);
    const isPath = what === "path" && !isForeignPath(text);
    if (isPath && (await this.#isOld(join(workspace.root, text)))) return true;
    const isHost = what === "address";
    const wanted = isHost ? text.toLowerCase() : text;
    try {
      for await (const batch of walk(workspace, "", { signal })) {
        for (const { path, kind } of batch) {
          signal.throwIfAborted();
          if (kind !== "file" || isForeignPath(path)) continue;
          const text = await this.#readOld(join(workspace.root, path));
          if (text !== undefined && hasWord(isHost ? text.toLowerCase() : text, wanted))
            return true;
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return false;
  }

  /** The text of a file that was there before; nothing for others, and for what cannot be read. */
  async #readOld(file: string): Promise<string | undefined> {
    try {
      const { size, mtimeMs } = await stat(file);
      if (size > MAX_FILE_BYTES || mtimeMs >= this.#since) return undefined;
      return await readFile(file, "utf8");
    } catch {
      // Gone meanwhile, or not for the user to read: it names nothing.
      return undefined;
    }
  }

  async #isAnyOld(paths: readonly string[]): Promise<boolean> {
    for (const path of paths.slice(0, MAX_FILES)) if (await this.#isOld(path)) return true;
    return false;
  }

  async #isOld(path: string): Promise<boolean> {
    try {
      return (await stat(path)).mtimeMs < this.#since;
    } catch {
      // It is not there, or not for the user to look at.
      return false;
    }
  }

  #open(): Promise<Git | undefined> {
    // A folder without a repository, or with one that is not to be used.
    this.#git ??= Git.open(this.#options.env).catch(() => undefined);
    return this.#git;
  }

  async #findCommit(): Promise<string | undefined> {
    if (this.#options.commit !== undefined) return this.#options.commit;
    const git = await this.#open();
    return git?.line(["rev-parse", "--verify", "--quiet", "HEAD"], { answers: [0, 1, 128] });
  }

  /** What git prints; nothing where it finds nothing, and `otherwise` where it fails or takes too long. */
  async #ask(git: Git, args: readonly string[], otherwise = ""): Promise<string> {
    try {
      return await git.read(args, { answers: [0, 1], timeoutMs: SEARCH_MS });
    } catch {
      // A question too many is better than one too few.
      return otherwise;
    }
  }
}

const EXCLUDED = FOREIGN_FOLDERS.map((name) => `:(top,exclude,glob)**/${name}/**`);

/** Whether a path leads into the code of others. */
export function isForeignPath(path: string): boolean {
  return FOREIGN.test(path);
}

function splitZero(text: string): string[] {
  return text.split("\0").filter((part) => part !== "");
}

/** Whether a text has a word with no letter or digit on either side. */
function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const around = [text[at - 1], text[at + word.length]];
    if (around.every((sign) => sign === undefined || !/\w/.test(sign))) return true;
  }
  return false;
}
