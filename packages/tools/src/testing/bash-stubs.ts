import { spawn } from "node:child_process";
import { FILE_NAMES, STUB_NAMES } from "./command-lines.ts";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

/** A command that bash ran: of which line, and its words. */
export interface StubRun {
  at: number;
  run: string[];
}

export interface BatchResult {
  runs: StubRun[];
  /** Files that came to be. */
  files: string[];
}

/** A line that waits longer, for something that never comes, is ended. It has a second of CPU. */
const LINE_TIMEOUT_MS = 15_000;
/** What lines leave running in the background has this long after the shell has ended. */
const END_GRACE_MS = 2_000;
/** Processes of a batch at a time; it is ended where there are more. */
export const MAX_PROCESSES = 300;
/** How often they are counted. */
const COUNT_MS = 50;

/*
 * Programs are functions that report their words on a descriptor of their own; whatever is
 * no function is reported by the handle of bash for programs that are not found, as there
 * are none. A report has no line break in it, at which bash would write it in two pieces. A
 * line ends after a number of commands, or a second of CPU. Each line is reported before it runs.
 */
const DRIVER = `
exec 200>&3 3>&-
PATH=/nowhere
ulimit -f 2000
__log() {
  (( ++__count > 40 )) && exit 0
  builtin printf -v __run '%s\\34' "$__at" "$@"
  builtin printf '%s\\35' "\${__run//$'\\n'/$'\\36'}" >&200
}
command_not_found_handle() { __log "$@"; }
for __name in $STUBS; do builtin eval "function $__name { __log '$__name' \\"\\$@\\"; }"; done
function false { __log false "$@"; return 1; }
unset STUBS __name
__at=0 __count=0
for __line; do
  builtin printf '%s\\34\\35' "$__at" >&200
  (builtin set --; ulimit -t 1; builtin eval "$__line"; builtin wait) </dev/null >/dev/null 2>&1
  ((__at++))
done`;

/** Names that bash has a meaning for, and to other shells are programs as others. */
const BASH_WORDS = "[[ ]] function select coproc time source builtin declare let x+=1 {x}".split(
  " ",
);

/*
 * The same for dash, which has no such handle: words that mean something to bash alone are
 * programs that report themselves. A report is one write, as a builtin makes one.
 */
const DASH_DRIVER = `
PATH=$PWD/../bin
export __at
__log() {
  __count=$((__count + 1))
  if command test $__count -gt 40; then exit 0; fi
  command printf '%s\\034' "$__at" "$@" "$__end" >&9
}
for __name in $STUBS; do
  case $__name in
    :) ;;
    *) eval "$__name() { __log '$__name' \\"\\$@\\"; }" ;;
  esac
done
false() { __log false "$@"; return 1; }
unset STUBS __name
__at=0 __count=0
for __line do
  command printf '%s\\034' "$__at" "$__end" >&9
  (set --; ulimit -t 1; eval "$__line"; wait) </dev/null >/dev/null 2>&1
  __at=$((__at + 1))
done`;
const DASH_PROGRAM = `#!/bin/sh
name=\${0##*/}
printf '%s\\034' "$__at" "$name" "$@" "$__end" >&9
`;

/** The shells that lines can be compared with. */
export type StubShell = "bash" | "dash";

/** Runs lines by a real dash, each in a subshell, in a folder where only stubs can be run. */
async function runWithDash(lines: readonly string[], place: Place): Promise<Log> {
  const { folder } = place;
  const programs = join(folder, "..", "bin");
  mkdirSync(programs, { recursive: true });
  for (const name of BASH_WORDS) {
    writeFileSync(join(programs, name), DASH_PROGRAM, { mode: 0o755 });
  }
  const env = { STUBS: STUB_NAMES.join(" "), LC_ALL: "C.UTF-8", __end: "\u001d" };
  return readLog(["dash", "-c", `exec 9>&3 3>&-; ${DASH_DRIVER}`, "dash", ...lines], place, env);
}

async function runWithBash(lines: readonly string[], place: Place): Promise<Log> {
  const env = { STUBS: STUB_NAMES.join(" "), LC_ALL: "C.UTF-8" };
  return readLog(["bash", "--norc", "--noprofile", "-c", DRIVER, "bash", ...lines], place, env);
}

/** Runs lines by a real shell, each in a subshell, in a folder where only stubs can be run. */
export async function runWithStubs(
  lines: readonly string[],
  folder: string,
  shell: StubShell = "bash",
  lineTimeoutMs: number = LINE_TIMEOUT_MS,
): Promise<BatchResult> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const name of FILE_NAMES) writeFileSync(join(folder, name), "");
  const runs: StubRun[] = [];
  const place = { folder, lineTimeoutMs };
  for (let from = 0; from < lines.length;) {
    const rest = lines.slice(from);
    const { text, isStuck } = await (shell === "bash" ? runWithBash : runWithDash)(rest, place);
    const found = parseLog(text).map(({ at, run }) => ({ at: from + at, run }));
    runs.push(...found.filter(({ run }) => run.length > 0));
    // The others go on behind a line that never ends.
    from = isStuck ? Math.max(from, ...found.map(({ at }) => at)) + 1 : lines.length;
  }
  const known = new Set(FILE_NAMES);
  return { runs, files: readdirSync(folder).filter((name) => !known.has(name)) };
}

/** What lines ran; of each line itself there is an entry without words. */
function parseLog(text: string): StubRun[] {
  return text
    .replaceAll("\u001d\u001c", "\u001d")
    .split("\u001d")
    .slice(0, -1)
    .map((entry) => {
      const [at, ...run] = entry.replaceAll("\u001e", "\n").split("\u001c").slice(0, -1);
      return { at: Number(at), run };
    });
}

interface Place {
  folder: string;
  lineTimeoutMs: number;
}

interface Log {
  text: string;
  /** The last line that was begun did not end, and nothing behind it ran. */
  isStuck: boolean;
}

/** What a program reports on its descriptor 3. All that it started has ended when this settles. */
async function readLog(
  [program = "", ...args]: readonly string[],
  { folder, lineTimeoutMs }: Place,
  env: Readonly<Record<string, string>>,
): Promise<Log> {
  const child = spawn(program, args, {
    cwd: folder,
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: { PATH: process.env["PATH"], HOME: folder, ...env },
    // A process group of its own, which is ended as a whole.
    detached: true,
  });
  const log = child.stdio[3];
  if (!log || !("on" in log)) throw new Error("There is no log.");
  let problem: string | undefined;
  const stop = (why: string): void => {
    problem ??= why;
    endGroup(child.pid);
  };
  let isStuck = false;
  const waits = setTimeout(() => {
    isStuck = true;
    endGroup(child.pid);
  }, lineTimeoutMs);
  const timers: NodeJS.Timeout[] = [
    waits,
    setInterval(() => {
      const count = countGroup(child.pid);
      if (count > MAX_PROCESSES) stop(`has ${count} processes`);
    }, COUNT_MS),
  ];
  const pieces: Buffer[] = [];
  log.on("data", (piece: Buffer) => {
    pieces.push(piece);
    waits.refresh();
  });
  try {
    const status = await new Promise<string>((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", () => timers.push(setTimeout(() => endGroup(child.pid), END_GRACE_MS)));
      // Once nothing holds the log any more.
      child.on("close", (code, signal) => resolve(signal ?? String(code)));
    });
    if (problem !== undefined) throw new Error(`A batch of lines ${problem}, and was ended.`);
    const isEnded = status === "0" || status === "1" || isStuck;
    if (!isEnded) throw new Error(`${program} ended with ${status}.`);
    return { text: Buffer.concat(pieces).toString(), isStuck };
  } finally {
    for (const timer of timers) clearTimeout(timer);
    endGroup(child.pid);
  }
}

function endGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, "SIGKILL");
  } catch (error) {
    // Nothing of it is left.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** The processes that work in a folder; 0 where there is no /proc. */
export function countProcesses(folder: string): number {
  const real = realpathSync(folder);
  return listProcesses().filter((pid) => readFolder(pid) === real).length;
}

function readFolder(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // It has ended meanwhile, or is another user's.
    return undefined;
  }
}

/** The processes of a group; 0 where there is no /proc. */
function countGroup(leader: number | undefined): number {
  return listProcesses().filter((pid) => readGroup(pid) === leader).length;
}

function listProcesses(): readonly string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
}

function readGroup(pid: string): number | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    // It has ended meanwhile.
    return undefined;
  }
  // Behind the name, which may have any characters: the state, the parent, the group.
  const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return state === "Z" ? undefined : Number(group);
}
