import type { AgentEvent } from "@gyre/agent";
import { type ProgramEnd, runProgram, type Toolset } from "@gyre/tools";
import { ranCallId, ranText } from "./ran-command.ts";

/** Of what a command said, so much is told to the model: its end. */
const MAX_TOLD_CHARS = 16_000;
/** How much of what it has said so far is shown while it runs. */
const MAX_SHOWN_CHARS = 4_000;

type Environment = Readonly<Record<string, string | undefined>>;

export interface UserCommand {
  command: string;
  id: string;
  /** The model is not told of it, and the user sees that. Default: false. */
  isAside?: boolean;
  toolset: Toolset;
  env: Environment;
  signal: AbortSignal;
  /** Told as if a tool ran: it looks the same. */
  emit: (event: AgentEvent) => void;
}

/**
 * Runs a command of the user's own, with all rights of the user, and gives what to tell the
 * model of it behind the next prompt, from which `promptOf` tells it. What it started ends with it.
 */
export async function runUserCommand(given: UserCommand): Promise<string> {
  const { command, emit, env, isAside = false, signal, toolset } = given;
  const id = ranCallId(given.id, isAside);
  const shell = env["SHELL"] ?? "/bin/sh";
  const call = { toolCallId: id, toolName: "shell", args: { command } };
  emit({ type: "tool_execution_start", ...call });
  let shown = "";
  const end = await runProgram(
    { argv: [shell, "-c", command], cwd: toolset.env.workspace.root, env: definedOf(env) },
    {
      signal,
      spoolFolder: toolset.env.spoolFolder,
      onOutput: (piece) => {
        shown = (shown + piece).slice(-MAX_SHOWN_CHARS);
        const partialResult = { content: [{ type: "text" as const, text: shown }] };
        emit({ type: "tool_execution_update", ...call, partialResult });
      },
    },
  );
  const { aborted, durationMs, exitCode, timedOut } = end;
  const stdout = textOf(end.stdout);
  const stderr = textOf(end.stderr);
  const said = [stdout, stderr].filter((text) => text !== "").join("\n");
  const isError = exitCode !== 0;
  emit({
    type: "tool_execution_end",
    toolCallId: id,
    toolName: "shell",
    outcome: aborted ? "aborted" : timedOut ? "timeout" : isError ? "error" : "ok",
    isError,
    durationMs,
    result: {
      content: [{ type: "text", text: said }],
      details: { stdout, stderr, exitCode, aborted, timedOut },
    },
  });
  const cut = said.length > MAX_TOLD_CHARS ? `…${said.slice(-MAX_TOLD_CHARS)}` : said;
  const ended = exitCode === null ? "ended by a signal" : `exit code ${exitCode}`;
  return ranText({ command, ended, said: cut });
}

function textOf({ head, path, tail }: ProgramEnd["stdout"]): string {
  return path === undefined ? head + tail : `${head}\n…\n${tail}`;
}

function definedOf(env: Environment): Record<string, string> {
  const known = Object.entries(env).filter(
    (each): each is [string, string] => each[1] !== undefined,
  );
  return Object.fromEntries(known);
}
