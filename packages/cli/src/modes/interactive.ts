import { type ExitCode, UsageError } from "../core/exit-codes.ts";
import type { Io } from "../core/io.ts";
import { STDERR_LOG } from "@gyre/coding/internal/core/log-file";
import type { Values } from "../core/options.ts";
import type { LineStreams } from "./screen-reader/line-terminal.ts";
import type { ProgramStart, TerminalStreams } from "./tui/app/interactive.ts";
import { AgentOpener, readFirstSetup } from "./tui/start/agent-opener.ts";
import type { CreateOpener } from "./tui/start/opener.ts";

/** `gyre` for a person at a terminal: the full screen, or lines for a screen reader. */
export async function runInteractive(
  args: readonly string[],
  values: Values,
  io: Io,
  streams: TerminalStreams & LineStreams,
): Promise<ExitCode> {
  if (values.verbose === STDERR_LOG && process.stderr.isTTY) {
    throw new UsageError(
      "--verbose without a file writes to stderr, which is this terminal. Name a file (--verbose wire.jsonl), or redirect stderr (2> wire.jsonl).",
    );
  }
  const first = await readFirstSetup(values, io);
  const { setup } = first;
  const createOpener: CreateOpener = (place) => new AgentOpener({ values, io, first, ...place });
  const { draft, "screen-reader": isPlain = false } = values;
  return runProgram(args, { io, setup, createOpener, draft, isPlain }, streams);
}

/** The program at a terminal, as lines where that is asked for. */
export async function runProgram(
  args: readonly string[],
  { isPlain, ...start }: ProgramStart & { isPlain: boolean },
  streams: TerminalStreams & LineStreams,
): Promise<ExitCode> {
  const { io, setup } = start;
  if (isPlain || io.env["TERM"] === "dumb" || setup.settings.screenReader) {
    const { runScreenReader } = await import("./screen-reader/screen-reader.ts");
    return runScreenReader(args, start, streams);
  }
  const { runTerminal } = await import("./tui/app/interactive.ts");
  return runTerminal(args, start, streams);
}
