import { type ExitCode, UsageError } from "../core/exit-codes.ts";
import type { Io } from "../core/io.ts";
import { STDERR_LOG } from "@gyre/coding/internal/core/log-file";
import type { Values } from "../core/options.ts";
import type { LineStreams } from "./screen-reader/line-terminal.ts";
import type { TerminalStreams } from "./tui/app/interactive.ts";
import { readFirstSetup } from "./tui/start/agent-opener.ts";

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
  const isPlain = values["screen-reader"] || io.env["TERM"] === "dumb";
  if (isPlain || first.setup.settings.screenReader) {
    const { runScreenReader } = await import("./screen-reader/screen-reader.ts");
    return runScreenReader(args, values, io, first, streams);
  }
  const { runTerminal } = await import("./tui/app/interactive.ts");
  return runTerminal(args, values, io, first, streams);
}
