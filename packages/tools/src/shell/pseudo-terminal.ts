import { existsSync } from "node:fs";
import type { ToolEnv } from "../contract/env.ts";
import { runProgram } from "../process/processes.ts";
import type { ProgramSpec, Sandbox } from "../sandbox/sandbox.ts";
import { Screen, SCREEN_COLUMNS, SCREEN_ROWS } from "../terminal/screen.ts";
import type { Workspace } from "../workspace/workspace.ts";

/** What programs take the terminal for: they know it everywhere. */
const TERM = "xterm-256color";
const PROBE_TIMEOUT_MS = 20_000;
/** No program that fails for another reason ends with it. */
const PROBE_CODE = 57;
const PROBE = `[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size && exit ${PROBE_CODE}`;
const PROBE_OUTPUT = `${SCREEN_ROWS} ${SCREEN_COLUMNS}`;
/** Without it, the python3 of macOS is a program that offers to install it. */
const MAC_TOOLS = "/Library/Developer/CommandLineTools/usr/bin/python3";

/** A terminal that a program makes has no size, and shows nothing of what is typed. */
const SET_UP = `stty echo rows ${SCREEN_ROWS} cols ${SCREEN_COLUMNS};`;

/** Copies between its own streams and a terminal that it makes for a command, and ends as that does. */
const PYTHON = `
import fcntl, os, pty, select, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    size = struct.pack("HHHH", int(sys.argv[1]), int(sys.argv[2]), 0, 0)
    fcntl.ioctl(0, termios.TIOCSWINSZ, size)
    try:
        os.execvp(sys.argv[3], sys.argv[3:])
    except OSError as error:
        os.write(2, str(error).encode())
        os._exit(127)
def copy(source, target):
    data = os.read(source, 65536)
    rest = data
    while rest:
        rest = rest[os.write(target, rest):]
    return data
sources = [0, terminal]
while True:
    ready = select.select(sources, [], [])[0]
    if 0 in ready and not copy(0, terminal):
        sources.remove(0)
    if terminal in ready:
        try:
            if not copy(terminal, 1):
                break
        except OSError:
            break
status = os.waitpid(pid, 0)[1]
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
`;

/** Has a program run in a terminal. */
type Way = (program: ProgramSpec) => ProgramSpec;

/** The programs that can make a terminal, the fastest first. */
const WAYS: readonly Way[] = [byScript, byScriptOfBsd, byPython];

/** That of util-linux, which gives what it runs to the user's shell. */
function byScript({ argv, env, ...program }: ProgramSpec): ProgramSpec {
  const shell = env["SHELL"];
  const restore = shell === undefined ? "unset SHELL;" : `export SHELL=${quote(shell)};`;
  const line = `${SET_UP} ${restore} exec ${argv.map(quote).join(" ")}`;
  return {
    ...program,
    // Where it is ended it says so, which is no word of the command's.
    argv: ["/bin/sh", "-c", 'exec script -qefc "$1" /dev/null 2>/dev/null', "sh", line],
    env: { ...env, SHELL: "/bin/sh" },
  };
}

function byScriptOfBsd({ argv, ...program }: ProgramSpec): ProgramSpec {
  const starter = ["/bin/sh", "-c", `${SET_UP} exec "$@"`, "sh"];
  return { ...program, argv: ["script", "-q", "/dev/null", ...starter, ...argv] };
}

function byPython({ argv, ...program }: ProgramSpec): ProgramSpec {
  const size = [String(SCREEN_ROWS), String(SCREEN_COLUMNS)];
  return { ...program, argv: ["python3", "-c", PYTHON, ...size, ...argv] };
}

function quote(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** By the workspace and the kind of sandbox: what works there. */
const found = new WeakMap<Workspace, Map<Sandbox["kind"], Promise<Way | undefined>>>();

/**
 * The program such that it runs in a terminal, by what this machine has for that. To be put into the sandbox after that:
 * the terminal is one of the sandbox. Throws where none can be made.
 */
export async function inTerminal(
  env: ToolEnv,
  sandbox: Sandbox,
  program: ProgramSpec,
): Promise<ProgramSpec> {
  const known = found.get(env.workspace) ?? new Map<Sandbox["kind"], Promise<Way | undefined>>();
  found.set(env.workspace, known);
  const search = known.get(sandbox.kind) ?? findWay(env, sandbox);
  known.set(sandbox.kind, search);
  const way = await search;
  if (way) return way({ ...program, env: { ...program.env, TERM } });
  throw new Error(
    "No terminal can be made here: that takes script (util-linux) or python3. Run it without tty.",
  );
}

/** The first that makes a terminal of the right size and ends as its program does. */
async function findWay(env: ToolEnv, sandbox: Sandbox): Promise<Way | undefined> {
  if (process.platform === "win32") return undefined;
  for (const way of WAYS) {
    const isOffer = process.platform === "darwin" && !existsSync(MAC_TOOLS);
    if (way === byPython && isOffer) continue;
    if (await doesWork(way, env, sandbox)) return way;
  }
  return undefined;
}

async function doesWork(way: Way, env: ToolEnv, sandbox: Sandbox): Promise<boolean> {
  const { clock, spoolFolder } = env;
  const probe = way({ argv: ["/bin/sh", "-c", PROBE], cwd: "/", env: env.environment });
  const policy = { writable: [], readOnly: [], hidden: [], network: false };
  try {
    const { exitCode, stdout } = await runProgram(sandbox.wrap(probe, policy), {
      timeoutMs: PROBE_TIMEOUT_MS,
      terminal: new Screen(),
      clock,
      spoolFolder,
    });
    return exitCode === PROBE_CODE && stdout.head.includes(PROBE_OUTPUT);
  } catch {
    // There is no such program.
    return false;
  }
}
