import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { type ProgramSpec, SYSTEM_PATH } from "../sandbox/sandbox.ts";
import { limitMark, newRunId } from "@gyre/ai/programs";

/**
 * How what a command without a sandbox starts is ended with it. `namespace`: it has PIDs of its
 * own, and the kernel ends them all at once. `sweep`: its processes are looked for by their marks
 * until none is left; with `prlimit`, one of the marks is a limit that a program keeps also where
 * it drops its environment, its session and its parents.
 */
export type Containment =
  | { kind: "namespace"; unshare: string; prlimit?: string }
  | { kind: "sweep"; prlimit?: string };

const PROBE_TIMEOUT_MS = 20_000;
/** 128 and the number of SIGTERM. */
export const EXIT_BY_SIGTERM = 143;

/**
 * `--kill-child` ties the namespace to its first process. Mounts that a command makes are seen
 * outside as far as they are without it.
 */
const UNSHARE_OPTIONS = ["--pid", "--fork", "--kill-child", "--mount-proc"];
const KEEP_MOUNTS = ["--propagation", "unchanged"];

/**
 * The first process of the namespace: the kernel keeps signals from it that it does not handle, so
 * the command itself is the second. What a shell says about a signal goes nowhere.
 */
const INIT = 'exec 9>&2 2>/dev/null; (exec "$@" 2>&9 9>&-); exit $?';

/** Ends well for those who have their own PIDs, a /proc that shows them, and get signals. */
const PROBE = "[ $$ -lt 9 ] && [ -e /proc/$$/stat ] && [ ! -e /proc/9/stat ] && kill -TERM $$";

/**
 * Programs that look at, signal or trace processes of others, or change mounts: a command line
 * with one of these runs among all processes.
 */
const ACTS_ON_OTHERS =
  /(?:^|[^\w.-])(?:ps|top|htop|pgrep|pidof|pstree|kill|pkill|killall|skill|lsof|fuser|ss|netstat|gdb|strace|ltrace|perf|mount|umount|nsenter|renice|ionice|taskset|chrt|prlimit)(?![\w.-])|\/proc(?!\w)/;

let found: Promise<Containment> | undefined;

/** What works on this machine, tried out once. */
export function findContainment(): Promise<Containment> {
  found ??= tryContainments(SYSTEM_PATH);
  return found;
}

/** The same for the programs of other folders, as in PATH. */
export async function tryContainments(path: string): Promise<Containment> {
  if (process.platform !== "linux") return { kind: "sweep" };
  const [unshare, prlimit] = await Promise.all([tryUnshare(path), tryPrlimit(path)]);
  return {
    ...(unshare === undefined ? { kind: "sweep" } : { kind: "namespace", unshare }),
    ...(prlimit !== undefined && { prlimit }),
  };
}

/** The program of a shell command such that all that it starts can be ended, as this machine can. */
export async function containCommand(program: ProgramSpec, command: string): Promise<ProgramSpec> {
  return containProcesses(program, command, await findContainment());
}

/** The program of a shell command such that all that it starts can be ended. */
export function containProcesses(
  program: ProgramSpec,
  command: string,
  containment: Containment,
): ProgramSpec {
  if (containment.kind === "namespace" && !ACTS_ON_OTHERS.test(command)) {
    const argv = namespaceArguments(containment.unshare, program.argv);
    return { ...program, argv, tree: { kind: "namespace" } };
  }
  const { prlimit } = containment;
  return prlimit === undefined ? program : { ...program, tree: { kind: "limit", prlimit } };
}

/** For people: what is in use. */
export function describeContainment({ kind, prlimit }: Containment): string {
  if (kind === "namespace") return "the PID namespace of a command ends with it";
  if (process.platform !== "linux") return "the process group of a command ends with it";
  const marks = prlimit === undefined ? "their environment" : "their environment and a limit";
  return `processes of a command are found by ${marks}, and end with it`;
}

function namespaceArguments(unshare: string, argv: readonly string[]): string[] {
  const init = ["/bin/sh", "-c", INIT, "sh"];
  return [unshare, ...UNSHARE_OPTIONS, ...KEEP_MOUNTS, "--", ...init, ...argv];
}

/**
 * For root alone: others need a user namespace, in which files of root have no known owner, and
 * neither sudo nor an ssh that checks its files works.
 */
async function tryUnshare(path: string): Promise<string | undefined> {
  const unshare = findProgram(path, "unshare");
  if (unshare === undefined || process.geteuid?.() !== 0) return undefined;
  const argv = namespaceArguments(unshare, ["/bin/sh", "-c", PROBE]);
  const { code } = await tryProgram(argv);
  return code === EXIT_BY_SIGTERM ? unshare : undefined;
}

async function tryPrlimit(path: string): Promise<string | undefined> {
  const prlimit = findProgram(path, "prlimit");
  if (prlimit === undefined) return undefined;
  const id = newRunId();
  const { stdout } = await tryProgram(
    limitArguments(prlimit, id, ["/bin/sh", "-c", "cat /proc/self/limits"]),
  );
  return stdout.includes(limitMark(id)) ? prlimit : undefined;
}

/** The arguments that start a program with the limit by which those of a run are known. */
export function limitArguments(prlimit: string, id: string, argv: readonly string[]): string[] {
  return [prlimit, `--rttime=${limitMark(id)}:`, "--", ...argv];
}

function findProgram(path: string, name: string): string | undefined {
  return path
    .split(":")
    .map((folder) => join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        // Not in this folder.
        return false;
      }
    });
}

function tryProgram([file = "", ...args]: readonly string[]): Promise<{
  code: unknown;
  stdout: string;
}> {
  return new Promise((done) => {
    execFile(file, args, { cwd: "/", env: {}, timeout: PROBE_TIMEOUT_MS }, (error, stdout) =>
      done({ code: error?.code ?? 0, stdout }),
    );
  });
}
