import { lstatSync } from "node:fs";
import { homedir } from "node:os";
import { join, relative, sep } from "node:path";
import type { ToolEnv } from "../contract/env.ts";
import {
  asEnvironment,
  filterNames,
  neutralSettings,
  parseSettings,
  pushRedirects,
  type Setting,
  splitNames,
} from "./config.ts";
import { findRepository, GitError, literal, type RepositoryFolders } from "./repository.ts";
import { secretPlaces } from "../sandbox/places.ts";
import { type CapturedOutput, type ProgramEnd, runProgram } from "../process/processes.ts";
import type { SandboxPolicy } from "../sandbox/sandbox.ts";
import { sanitize } from "@gyre/ai/text";
import { type LineLimits, LineWindow, type ShownLines } from "../text/truncate.ts";

/** For one run of git. */
export const GIT_TIMEOUT_MS = 120_000;
/** Of output that is taken apart, and so has to be whole. */
export const MAX_PARSED_CHARS: number = 16 * 1024 * 1024;
/** Of what git says when it fails. */
const MAX_ERROR_CHARS = 4_000;

export interface GitOptions {
  /** Default: `git`, as the environment of programs finds it. */
  program?: string;
  /** The author of commits. Default: as the user's own settings say. */
  author?: { name: string; email: string };
  /**
   * Folders outside of the workspace that its `.git` may lead to, as that of a linked
   * worktree does. Default: none.
   */
  repositories?: readonly string[];
  push?: PushOptions;
}

/** How a push reaches its server. What the repository's own config says of it is not heeded. */
export interface PushOptions {
  /** Default: https and ssh. Others run programs that the other side chooses. */
  protocols?: readonly string[];
  /** As for git's `credential.helper`. Default: none. */
  credentialHelper?: string;
  /** Default: `ssh`. */
  sshCommand?: string;
  /** Further variables, as that of an agent for keys. */
  environment?: Readonly<Record<string, string>>;
}

export interface GitRun {
  /** Changes the repository or the files. */
  write?: boolean;
  network?: boolean;
  input?: string;
  timeoutMs?: number;
  /** Exit codes that are answers, too. */
  answers?: readonly number[];
  signal?: AbortSignal;
}

/** What one run gave. */
export interface GitAnswer {
  exitCode: number;
  stdout: CapturedOutput;
  stderr: string;
}

/**
 * git at work in the repository of a workspace. Nothing that the repository
 * brings along is run: no hooks, filters, drivers, helpers or monitors; nothing of the
 * machine's or the user's settings is read but who they are and what they ignore.
 */
export class Git {
  readonly env: ToolEnv;
  readonly options: GitOptions;
  /** The working tree: the workspace, or a folder around it. */
  readonly tree: string;
  /** Of the workspace in the working tree, with a `/` at its end; empty where they are the same. */
  readonly prefix: string;
  /** Of this working tree. */
  readonly folder: string;
  /** Of the repository; the same, but for a linked worktree. */
  readonly commonFolder: string;
  /** What its config sets, and what the user's own settings add to that. */
  readonly config: ReadonlyMap<string, string>;
  /** Names of filters in its config, which are not run. */
  readonly filters: readonly string[];
  readonly #variables: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal | undefined;

  private constructor(found: Found, signal: AbortSignal | undefined) {
    this.env = found.env;
    this.options = found.options;
    this.tree = found.tree;
    this.prefix = computePrefix(found.tree, found.env.workspace.root);
    this.folder = found.folder;
    this.commonFolder = found.commonFolder;
    this.config = new Map([...found.settings, ...found.config]);
    this.filters = filterNames(found.config.keys());
    this.#variables = {
      ...baseVariables(found.env),
      GIT_DIR: found.folder,
      GIT_WORK_TREE: found.tree,
      ...asEnvironment([
        ...neutralSettings([...found.config.keys(), ...found.moduleKeys]),
        ...found.settings,
      ]),
    };
    this.#signal = signal;
  }

  /**
   * Finds the repository and reads what its config has. `signal` ends every run. Throws
   * where there is none, or where it leads out of the workspace.
   */
  static async open(env: ToolEnv, options: GitOptions = {}, signal?: AbortSignal): Promise<Git> {
    const places = await findRepository(env, options.repositories ?? []);
    const variables = {
      ...baseVariables(env),
      GIT_DIR: places.folder,
      GIT_WORK_TREE: places.tree,
      ...asEnvironment(neutralSettings([])),
    };
    const policy = readPolicy([places.tree, places.folder, places.commonFolder]);
    const ask = async (args: readonly string[], answers: readonly number[]): Promise<string> => {
      const run = { answers, ...(signal && { signal }) };
      const pieces: string[] = [];
      await runGit(env, options, args, variables, policy, run, keepIn(pieces));
      return pieces.join("");
    };
    const config = new Map(parseSettings(await ask(["config", "--null", "--list"], [0])));
    const moduleKeys = await submoduleKeys(places.tree, ask);
    const settings = await ownSettings(env, options, config, signal);
    return new Git({ env, options, ...places, config, moduleKeys, settings }, signal);
  }

  /**
   * Pathspecs for these paths of the workspace and nothing else; without any, for all of it. What
   * the repository has outside of the workspace is never meant.
   */
  pathspecs(paths: readonly string[]): string[] {
    if (this.prefix === "") return paths.map(literal);
    return (paths.length === 0 ? ["."] : paths).map((path) => literal(this.inTree(path)));
  }

  /** Pathspecs for all but these paths. */
  excluding(paths: readonly string[]): string[] {
    return paths.map((path) => `:(top,exclude,literal)${this.inTree(path)}`);
  }

  /** A path of the workspace, as the repository has it. */
  inTree(path: string): string {
    return path === "." ? this.prefix.slice(0, -1) || "." : `${this.prefix}${path}`;
  }

  /** Runs git with these arguments. Throws `GitError` on an exit code that is no answer. */
  async run(args: readonly string[], run: GitRun = {}): Promise<GitAnswer> {
    return this.#run(args, run);
  }

  /** The same, for what changes the repository or the files. */
  write(args: readonly string[], run: GitRun = {}): Promise<GitAnswer> {
    return this.#run(args, { ...run, write: true });
  }

  /** The same, giving all of the output: it is to be taken apart. */
  async read(args: readonly string[], run: GitRun = {}): Promise<string> {
    const pieces: string[] = [];
    await this.#run(args, run, keepIn(pieces));
    return pieces.join("");
  }

  /** The same, giving the lines from `first` on that are within the limits. */
  async show(
    args: readonly string[],
    first: number,
    limits: LineLimits,
    run: GitRun = {},
  ): Promise<ShownLines> {
    const window = new LineWindow(first, limits);
    await this.#run(args, run, (piece) => window.feed(piece));
    return window.end();
  }

  /** The one line that it gives; nothing where it exits with 1. */
  async line(args: readonly string[], run: GitRun = {}): Promise<string | undefined> {
    const { exitCode, stdout } = await this.#run(args, { answers: [0, 1], ...run });
    return exitCode === 0 ? stdout.head.trimEnd() : undefined;
  }

  /** Why a push cannot be trusted to go where it says, if so. */
  pushRedirects(): string[] {
    return pushRedirects(this.config.keys());
  }

  #run(args: readonly string[], run: GitRun, take?: TakeOutput): Promise<GitAnswer> {
    const { write = false, network = false } = run;
    const push = network ? this.options.push : undefined;
    const variables: Record<string, string> = {
      ...this.#variables,
      ...(write ? {} : { GIT_OPTIONAL_LOCKS: "0" }),
      ...(network && networkVariables(push)),
    };
    const places = [this.tree, this.folder, this.commonFolder];
    const policy: SandboxPolicy = {
      ...readPolicy(places),
      ...(write && {
        writable: places,
        readOnly: [this.folder, this.commonFolder].flatMap((folder) => [
          join(folder, "config"),
          join(folder, "hooks") + sep,
        ]),
      }),
      network,
      // A push has to show who it is.
      ...(network && { hidden: [] }),
    };
    const signal = run.signal ?? this.#signal;
    const options = { ...run, ...(signal && { signal }) };
    return runGit(this.env, this.options, args, variables, policy, options, take);
  }
}

interface Found extends RepositoryFolders {
  env: ToolEnv;
  options: GitOptions;
  config: ReadonlyMap<string, string>;
  /** Of `.gitmodules`. */
  moduleKeys: readonly string[];
  settings: readonly Setting[];
}

type TakeOutput = (piece: string) => void;

/** Keeps output whole, up to what can be taken apart. */
function keepIn(pieces: string[]): TakeOutput {
  let chars = 0;
  return (piece) => {
    chars += piece.length;
    if (chars > MAX_PARSED_CHARS) {
      throw new GitError("git gave more than can be taken apart. Ask for less, as by paths.");
    }
    pieces.push(piece);
  };
}

async function runGit(
  env: ToolEnv,
  options: GitOptions,
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
  policy: SandboxPolicy,
  run: GitRun,
  take?: TakeOutput,
): Promise<GitAnswer> {
  const sandbox = await env.sandbox();
  const program = sandbox.wrap(
    { argv: [options.program ?? "git", ...args], cwd: env.workspace.root, env: variables },
    policy,
  );
  const { timeoutMs = GIT_TIMEOUT_MS, input, signal, answers = [0] } = run;
  const end = await runProgram(program, {
    timeoutMs,
    spoolFolder: env.spoolFolder,
    clock: env.clock,
    ...(input !== undefined && { input }),
    ...(signal && { signal }),
    ...(take && {
      onOutput: (piece, stream) => {
        if (stream === "stdout") take(piece);
      },
    }),
  });
  const stderr = sanitize(end.stderr.head.slice(0, MAX_ERROR_CHARS)).trim();
  const { exitCode } = end;
  if (exitCode === null || !answers.includes(exitCode)) {
    throw new GitError(failure(args, end, timeoutMs, stderr), exitCode);
  }
  return { exitCode, stdout: end.stdout, stderr };
}

function failure(
  args: readonly string[],
  end: ProgramEnd,
  timeoutMs: number,
  stderr: string,
): string {
  const what = `git ${args.find((arg) => !arg.startsWith("-")) ?? ""}`;
  if (end.aborted) return `${what} was stopped.`;
  if (end.timedOut) return `${what} did not end within ${timeoutMs / 1000} s and was stopped.`;
  const output = stderr || sanitize(end.stdout.head.slice(0, MAX_ERROR_CHARS)).trim();
  return `${what} failed${end.exitCode === null ? "" : ` (exit code ${end.exitCode})`}: ${output || "it did not say why."}`;
}

function readPolicy(places: readonly string[]): SandboxPolicy {
  return {
    writable: [],
    readOnly: places,
    hidden: secretPlaces(homedir(), process.env),
    network: false,
  };
}

/** For every run: no settings of the machine or the user, no questions, no way out. */
function baseVariables(env: ToolEnv): Record<string, string> {
  const own = Object.entries(env.environment).filter(([name]) => !name.startsWith("GIT_"));
  return {
    ...Object.fromEntries(own),
    LC_ALL: "C",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "",
    GIT_EDITOR: "false",
    GIT_SEQUENCE_EDITOR: "false",
    GIT_PAGER: "cat",
    // Missing objects of a partial clone would be fetched, by whatever its config says.
    GIT_NO_LAZY_FETCH: "1",
    GIT_ALLOW_PROTOCOL: "none",
    GIT_PROTOCOL_FROM_USER: "0",
    GIT_SSH_COMMAND: "false",
  };
}

function networkVariables(push: PushOptions = {}): Record<string, string> {
  const { protocols = ["https", "ssh"], sshCommand = "ssh", environment = {} } = push;
  return {
    ...environment,
    GIT_ALLOW_PROTOCOL: protocols.join(":"),
    GIT_SSH_COMMAND: sshCommand,
  };
}

/** Settings of the user that say who they are and how their files look; nothing else of theirs is read. */
const OWN_KEYS = ["user.name", "user.email", "core.autocrlf", "core.eol", "core.excludesfile"];

async function ownSettings(
  env: ToolEnv,
  options: GitOptions,
  config: ReadonlyMap<string, string>,
  signal: AbortSignal | undefined,
): Promise<Setting[]> {
  const settings: Setting[] = [];
  if (options.author) {
    settings.push(["user.name", options.author.name], ["user.email", options.author.email]);
  }
  const { GIT_CONFIG_GLOBAL: _own, ...variables } = baseVariables(env);
  const pieces: string[] = [];
  await runGit(
    env,
    options,
    [
      "config",
      "--global",
      "--includes",
      "--null",
      "--get-regexp",
      `^(${OWN_KEYS.join("|").replaceAll(".", "\\.")})$`,
    ],
    // Away from the repository: it has no say in this.
    { ...variables, GIT_DIR: "/dev/null" },
    readPolicy([env.workspace.root]),
    // 1: none of them is set. 128: there is no home folder, or no such file.
    { answers: [0, 1, 128], ...(signal && { signal }) },
    keepIn(pieces),
  );
  for (const [key, value] of parseSettings(pieces.join(""))) {
    const isSet = config.has(key) || settings.some(([name]) => name === key);
    if (isSet || !OWN_KEYS.includes(key)) continue;
    settings.push([key, expandHome(key, value, env)]);
  }
  if (options.push?.credentialHelper !== undefined) {
    settings.push(["credential.helper", options.push.credentialHelper]);
  }
  return settings;
}

function expandHome(key: string, value: string, env: ToolEnv): string {
  const home = env.environment["HOME"];
  return key === "core.excludesfile" && home !== undefined && value.startsWith("~/")
    ? join(home, value.slice(2))
    : value;
}

/** What `.gitmodules` sets, wherever git would look for it. */
async function submoduleKeys(
  tree: string,
  ask: (args: readonly string[], answers: readonly number[]) => Promise<string>,
): Promise<string[]> {
  const file = join(tree, ".gitmodules");
  const places = lstatSync(file, { throwIfNoEntry: false })
    ? [["--file", file]]
    : [
        ["--blob", ":.gitmodules"],
        ["--blob", "HEAD:.gitmodules"],
      ];
  const keys: string[] = [];
  for (const place of places) {
    const args = ["config", "--null", "--name-only", "--no-includes", ...place, "--list"];
    // 128: there is none, or none that git itself could read.
    const listed = await ask(args, [0, 1, 128]);
    keys.push(...splitNames(listed));
  }
  return keys;
}

function computePrefix(tree: string, root: string): string {
  const path = relative(tree, root);
  return path === "" ? "" : `${path}/`;
}
