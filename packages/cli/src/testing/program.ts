import { execFile, spawn } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { ScriptedService, ServiceRequest } from "./scripted-service.ts";

/** A file of the program. */
export interface Chunk {
  fileName: string;
  isEntry: boolean;
  bytes: number;
  /** The sources that are in it, absolute. */
  moduleIds: string[];
  imports: string[];
  dynamicImports: string[];
}

export interface RunOptions {
  /** Another run's home, to go on where that one ended. By default a fresh one. */
  home?: string;
  /** Default: the folder `work` of the home, which is made. */
  cwd?: string;
  /** Added to the few variables that a run has. */
  env?: Record<string, string>;
  /** What is piped in. Default: nothing. `open`: a pipe that the test writes to. */
  stdin?: string | Buffer | "open";
  /** Whom it talks to: key and address are in its environment. */
  service?: ScriptedService;
  /** Files that take what it writes, in place of the test. */
  outputTo?: string;
  errorsTo?: string;
  /** Sees all of stdout so far, each time that some came. */
  onStdout?: (stdout: string, run: Run) => void;
  /** Options for Node itself. */
  nodeOptions?: readonly string[];
  /** It is killed after this time, and `end` rejects. */
  deadlineMs?: number;
}

/** A run of the program that ended. */
export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  /** What it asked the service, this run alone. */
  requests: ServiceRequest[];
  home: string;
  cwd: string;
  /** From start to end. */
  ms: number;
  /** What it left in its folder for temporary files. */
  leftBehind: string[];
}

/** A run of the program. */
export interface Run {
  readonly home: string;
  readonly cwd: string;
  readonly stdin: Writable | null;
  readonly end: Promise<Ended>;
  /** So far. */
  readonly stdout: string;
  readonly stderr: string;
  kill(signal: NodeJS.Signals): void;
  /** Settles once stdout has this; rejects when the run ended without. */
  shows(text: string): Promise<void>;
  /** Closes the reading end of stdout. */
  stopReading(): void;
}

/** The program, made from the sources as they are now, in a folder of its own. */
export interface Program {
  readonly entry: string;
  readonly chunks: readonly Chunk[];
  start(args: readonly string[], options?: RunOptions): Promise<Run>;
  /** The same, to its end. */
  gyre(args: readonly string[], options?: RunOptions): Promise<Ended>;
  /** A fresh home, empty. */
  makeHome(): Promise<string>;
  /** Takes away all homes. */
  remove(): Promise<void>;
}

export const TEST_KEY = "sk-ant-test-0123456789abcdef";

/** A limit for a program that hangs: a busy machine takes long. */
const DEADLINE_MS = 100_000;
const root = fileURLToPath(new URL("../../../..", import.meta.url));
const MAX_REPORT_BYTES = 16_000_000;

interface Bundle {
  folder: string;
  entry: string;
  chunks: readonly Chunk[];
}

/** The test files of a thread share it. */
let bundle: Promise<Bundle> | undefined;

async function makeBundle(): Promise<Bundle> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), "gyre-program-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const into = join(folder, "bundle");
  const args = [
    join(root, "scripts/release/bundle-cli.mjs"),
    "--sources",
    "--json",
    "--into",
    into,
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    maxBuffer: MAX_REPORT_BYTES,
  });
  const chunks: Chunk[] = JSON.parse(stdout);
  copyFileSync(join(root, "packages/cli/package.json"), join(folder, "package.json"));
  // What is not bundled is found there, as it would be where it is installed.
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"), "junction");
  symlinkSync(join(root, "docs"), join(folder, "docs"), "junction");
  return { folder, entry: join(into, "gyre.js"), chunks };
}

/** Takes about a second, the first time. The caller removes it. */
export async function buildProgram(): Promise<Program> {
  const { folder, entry, chunks } = await (bundle ??= makeBundle());
  const homes: string[] = [];
  const makeHome = async (): Promise<string> => {
    const home = await mkdtemp(join(folder, "home-"));
    homes.push(home);
    return home;
  };
  const start: Program["start"] = async (args, options = {}) =>
    startRun(entry, args, options.home ?? (await makeHome()), options);
  return {
    entry,
    chunks,
    start,
    gyre: async (args, options) => (await start(args, options)).end,
    makeHome,
    async remove() {
      for (const home of homes.splice(0)) await rm(home, { recursive: true, force: true });
    },
  };
}

function startRun(entry: string, args: readonly string[], home: string, options: RunOptions): Run {
  const cwd = options.cwd ?? join(home, "work");
  const temporary = join(home, "tmp");
  for (const folder of [cwd, temporary]) mkdirSync(folder, { recursive: true });
  const { deadlineMs = DEADLINE_MS, onStdout, service, stdin } = options;
  const asked = service?.requests.length ?? 0;
  const startedAt = performance.now();
  const files = [options.outputTo, options.errorsTo].map((path) =>
    path === undefined ? "pipe" : openSync(path, "w"),
  );
  const child = spawn(process.execPath, [...(options.nodeOptions ?? []), entry, ...args], {
    cwd,
    env: { ...buildEnvironment(home, service), ...options.env },
    stdio: [stdin === undefined ? "ignore" : "pipe", ...files],
  });
  for (const file of files) if (typeof file === "number") closeSync(file);
  let stdout = "";
  let stderr = "";
  let isOver = false;
  let late: NodeJS.Timeout | undefined;
  const watchers = new Set<() => void>();
  const end = new Promise<Ended>((settle, fail) => {
    late = setTimeout(() => {
      child.kill("SIGKILL");
      fail(new Error(`gyre ${args.join(" ")} did not end.\n${stdout}\n${stderr}`));
    }, deadlineMs);
    child.once("error", fail);
    child.once("close", (code, signal) => {
      isOver = true;
      const ms = performance.now() - startedAt;
      const requests = service?.requests.slice(asked) ?? [];
      const leftBehind = readdirSync(temporary);
      settle({ code, signal, stdout, stderr, requests, home, cwd, ms, leftBehind });
    });
  }).finally(() => {
    clearTimeout(late);
    for (const look of watchers) look();
  });
  const run: Run = {
    home,
    cwd,
    stdin: child.stdin,
    end,
    get stdout() {
      return stdout;
    },
    get stderr() {
      return stderr;
    },
    kill: (signal) => void child.kill(signal),
    shows: (text) =>
      new Promise((settle, fail) => {
        const look = (): void => {
          if (stdout.includes(text)) settle();
          else if (isOver) fail(new Error(`It never showed ${JSON.stringify(text)}:\n${stdout}`));
          else return;
          watchers.delete(look);
        };
        watchers.add(look);
        look();
      }),
    stopReading: () => void child.stdout?.destroy(),
  };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    onStdout?.(stdout, run);
    for (const look of watchers) look();
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  // It may have ended before it read all of it.
  child.stdin?.on("error", () => undefined);
  if (stdin !== undefined && stdin !== "open") child.stdin?.end(stdin);
  return run;
}

/** All that a run knows of this machine: where programs are. */
export function buildEnvironment(
  home: string,
  service?: Pick<ScriptedService, "url">,
): Record<string, string> {
  const temporary = join(home, "tmp");
  const programs = [dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter);
  return {
    PATH: programs,
    HOME: home,
    USERPROFILE: home,
    XDG_CONFIG_HOME: join(home, "config"),
    XDG_DATA_HOME: join(home, "data"),
    XDG_STATE_HOME: join(home, "state"),
    XDG_CACHE_HOME: join(home, "cache"),
    TMPDIR: temporary,
    TEMP: temporary,
    LANG: "C.UTF-8",
    ...(service && { ANTHROPIC_API_KEY: TEST_KEY, ANTHROPIC_BASE_URL: service.url }),
  };
}

/** What a run wrote to stderr, without the line that says that this machine has no sandbox. */
export function stripSandboxLine({ stderr }: Pick<Ended, "stderr">): string {
  return stderr.replace(/^gyre: Commands run without a sandbox.*\n/m, "");
}

/** The session files beneath a home, in the order of their names. */
export function sessionFiles(home: string): string[] {
  const folders = ["config", "data", "state"].map((name) => join(home, name));
  return folders
    .filter((folder) => existsSync(folder))
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".jsonl"))
        .map((file) => join(folder, file)),
    )
    .toSorted();
}

/** The lines of a file of JSON lines, each of which has to be whole. */
export function jsonLines(text: string): Record<string, unknown>[] {
  if (text !== "" && !text.endsWith("\n")) throw new Error("The last line has no end.");
  const lines = text.split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}
