import { resolve } from "node:path";
import { EXIT, type ExitCode, findExitCode, UsageError } from "../../core/exit-codes.ts";
import { formatCount } from "../../text/usage-text.ts";
import { readDuration } from "./duration.ts";
import type { Job } from "./runs.ts";
import { shown } from "./run-text.ts";

export async function exportRun(job: Job, id: string, name: string): Promise<ExitCode> {
  const { runs, io, values } = job;
  const path = resolve(io.cwd, name);
  const onProgress = (count: number): void => writeProgress(job, `${formatCount(count)} entries`);
  const entries = await runs.get(id).export(path, { cwd: io.cwd, onProgress });
  const hint = `gyre --resume ${shown(path)} goes on with it.`;
  io.stdout.write(
    values.json
      ? `${JSON.stringify({ ok: true, run: id, path, entries })}\n`
      : `Wrote ${formatCount(entries)} entries to ${shown(path)}. ${hint}\n`,
  );
  return EXIT.done;
}

export async function prune(job: Job): Promise<ExitCode> {
  const { runs, io, values } = job;
  if (values.older === undefined) {
    throw new UsageError(
      '"runs prune" needs --older TIME: runs that ended longer ago are deleted.',
    );
  }
  const olderThanMs = readDuration("older", values.older);
  const { deleted } = await runs.prune({
    ...{ olderThanMs, signal: io.signal },
    onProgress: (count) => writeProgress(job, `${formatCount(count)} runs deleted`),
  });
  io.stdout.write(
    values.json
      ? `${JSON.stringify({ ok: !io.signal.aborted, deleted })}\n`
      : `Deleted ${formatCount(deleted)} ${deleted === 1 ? "run" : "runs"}.\n`,
  );
  return io.signal.aborted ? findExitCode(io.signal) : EXIT.done;
}

/** The tables were made or updated when the store was opened. */
export function migrate({ place, io, values }: Job): Promise<ExitCode> {
  io.stdout.write(
    values.json
      ? `${JSON.stringify({ ok: true, database: place })}\n`
      : `The tables of ${shown(place)} are up to date.\n`,
  );
  return Promise.resolve(EXIT.done);
}

/** For a person at a terminal. */
function writeProgress({ io, values }: Job, text: string): void {
  if (io.stderr.isTTY === true && !values.quiet) io.stderr.write(`${text}\n`);
}
