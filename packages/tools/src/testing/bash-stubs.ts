import { spawn } from "node:child_process";
import { FILE_NAMES, STUB_NAMES } from "./command-lines.ts";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
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

/** A batch of lines takes far less. */
const BATCH_TIMEOUT_MS = 120_000;

/*
 * Programs are functions that report their words on a descriptor of their own; whatever is
 * no function is reported by the handle of bash for programs that are not found, as there
 * are none. A report has no line break in it, at which bash would write it in two pieces. A
 * line ends after a number of commands, or a second of CPU.
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
  (builtin set --; ulimit -t 1; builtin eval "$__line"; builtin wait) </dev/null >/dev/null 2>&1
  ((__at++))
done`;

/** Runs lines by a real bash, each in a subshell, in a folder where only stubs can be run. */
export async function runWithStubs(lines: readonly string[], folder: string): Promise<BatchResult> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const name of FILE_NAMES) writeFileSync(join(folder, name), "");
  const child = spawn("bash", ["--norc", "--noprofile", "-c", DRIVER, "bash", ...lines], {
    cwd: folder,
    stdio: ["ignore", "ignore", "ignore", "pipe"],
    env: { PATH: process.env["PATH"], STUBS: STUB_NAMES.join(" "), LC_ALL: "C.UTF-8" },
    timeout: BATCH_TIMEOUT_MS,
  });
  const log = child.stdio[3];
  if (!log || !("on" in log)) throw new Error("There is no log.");
  const pieces: Buffer[] = [];
  log.on("data", (piece: Buffer) => pieces.push(piece));
  const status = await new Promise<string>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(signal ?? String(code)));
  });
  if (status !== "0" && status !== "1") throw new Error(`bash ended with ${status}.`);
  const known = new Set(FILE_NAMES);
  return {
    runs: Buffer.concat(pieces)
      .toString()
      .split("\u001d")
      .slice(0, -1)
      .map((entry) => {
        const [at, ...run] = entry.replaceAll("\u001e", "\n").split("\u001c").slice(0, -1);
        return { at: Number(at), run };
      }),
    files: readdirSync(folder).filter((name) => !known.has(name)),
  };
}
