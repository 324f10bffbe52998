import type { HistoryLine } from "@gyre/coding/internal/file-history/lines/line";
import { promptText } from "@gyre/coding/internal/conversation/prompt-text";
import { titleText } from "@gyre/coding/internal/text/session-title";
import { oneLine } from "@gyre/coding/internal/text/shown-text";
import type { Session } from "@gyre/sessions";
import { EXIT, type ExitCode, ExitError, UsageError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import type { Values } from "../../core/options.ts";
import { openStore } from "../../core/setup.ts";
import { counted } from "../../text/tool-text.ts";
import { runQuietly } from "./run-quietly.ts";

/** Files of a change that are named. */
const MAX_NAMED = 8;

/** `gyre bisect SESSION -- COMMAND`: finds the change of a session after which a command fails. */
export async function runBisect(
  [id, program, ...args]: readonly string[],
  _values: Values,
  io: Io,
): Promise<ExitCode> {
  if (id === undefined || program === undefined) {
    throw new UsageError("bisect takes a session and a command: gyre bisect ID -- npm test");
  }
  const session = await (await openStore(io)).open(id);
  try {
    return await bisect(session, [program, ...args], io);
  } finally {
    await session.close();
  }
}

async function bisect(session: Session, command: readonly string[], io: Io): Promise<ExitCode> {
  const { CopyInTime } = await import("@gyre/coding/internal/file-history/rewind/copy-in-time");
  const { header } = session;
  const copy = await CopyInTime.make(header.cwd, header.id, io.env);
  try {
    const { lines } = copy;
    if (lines.length === 0) {
      throw new ExitError(EXIT.failed, "This session has changed no files that were recorded.");
    }
    io.stderr.write(`${counted(lines.length, "change")} of ${header.cwd}, in a copy.\n`);
    /** Whether the command succeeds with the files as they were before a change. */
    const passes = async (line: number): Promise<boolean> => {
      const failed = await copy.goTo(line);
      if (failed.length > 0) {
        io.stderr.write(`Not as they were: ${oneLine(failed.slice(0, MAX_NAMED).join(", "))}\n`);
      }
      const isGood = await runQuietly(command, copy.folder, io.signal);
      const place = line === lines.length ? "now" : `before change ${line + 1}`;
      io.stderr.write(`${place}: ${isGood ? "passes" : "fails"}\n`);
      return isGood;
    };
    if (await passes(lines.length)) {
      io.stdout.write("The command succeeds with the files as they are: no change broke it.\n");
      return EXIT.done;
    }
    if (!(await passes(0))) {
      io.stdout.write("The command fails already before the first change of the session.\n");
      return EXIT.failed;
    }
    let good = 0;
    let bad = lines.length;
    while (bad - good > 1) {
      const middle = Math.floor((good + bad) / 2);
      if (await passes(middle)) good = middle;
      else bad = middle;
    }
    io.stdout.write(await describeChange(session, lines, good));
    return EXIT.done;
  } finally {
    await copy.remove();
  }
}

async function describeChange(
  session: Session,
  lines: readonly HistoryLine[],
  index: number,
): Promise<string> {
  const line = lines[index];
  if (!line) return "";
  const entry = await session.read(line.entry);
  const message = entry.type === "message" ? entry.message : undefined;
  const prompt = message?.role === "user" ? titleText(promptText(message)) : "(a rewind)";
  const paths = line.changes.map(({ path }) => path);
  const named = paths.slice(0, MAX_NAMED).join(", ");
  const more = paths.length > MAX_NAMED ? ` and ${paths.length - MAX_NAMED} more` : "";
  return `Change ${index + 1} of ${lines.length} broke it.\nPrompt: ${oneLine(prompt)}\nFiles: ${oneLine(named)}${more}\n`;
}
