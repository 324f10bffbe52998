import { containCommand, type ProgramEnd, runProgram } from "@gyre/tools";
import type { ConversedTools } from "./types.ts";
import type { UserCommandMessage } from "./user-command.ts";

/** Of a long output, its end is kept. */
const MAX_OUTPUT_CHARS = 16_000;
/** How much of the output so far is shown while the command runs. */
const MAX_SHOWN_CHARS = 4_000;

type Environment = Readonly<Record<string, string | undefined>>;

export interface UserCommandOptions {
  toolset: Pick<ConversedTools, "env">;
  env: Environment;
  signal: AbortSignal;
  /** Called with the end of the output so far. */
  onOutput: (output: string) => void;
}

/**
 * Runs a command of the user's own in the folder, with all rights of the user. Processes that
 * it started end with it.
 */
export async function runUserCommand(
  { command, aside }: Pick<UserCommandMessage, "command" | "aside">,
  { env, onOutput, signal, toolset }: UserCommandOptions,
): Promise<UserCommandMessage> {
  const shell = env["SHELL"] ?? "/bin/sh";
  const timestamp = Date.now();
  let shown = "";
  const program = await containCommand(
    { argv: [shell, "-c", command], cwd: toolset.env.workspace.root, env: pickDefined(env) },
    command,
  );
  const end = await runProgram(program, {
    signal,
    spoolFolder: toolset.env.spoolFolder,
    onOutput: (piece) => {
      shown = (shown + piece).slice(-MAX_SHOWN_CHARS);
      onOutput(shown);
    },
  });
  const { durationMs, exitCode } = end;
  const whole = [joinOutput(end.stdout), joinOutput(end.stderr)]
    .filter((text) => text !== "")
    .join("\n");
  const output = whole.length > MAX_OUTPUT_CHARS ? `…${whole.slice(-MAX_OUTPUT_CHARS)}` : whole;
  return { role: "userCommand", command, output, exitCode, aside, durationMs, timestamp };
}

function joinOutput({ head, path, tail }: ProgramEnd["stdout"]): string {
  return path === undefined ? head + tail : `${head}\n…\n${tail}`;
}

function pickDefined(env: Environment): Record<string, string> {
  const known = Object.entries(env).filter(
    (each): each is [string, string] => each[1] !== undefined,
  );
  return Object.fromEntries(known);
}
