import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { nearNames } from "@gyre/ai";
import type { Runs } from "@gyre/durable";
import { SessionError } from "@gyre/sessions";
import { resolveFileUrl } from "../../core/database.ts";
import { EXIT, type ExitCode, ExitError, UsageError } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import type { COMMANDS, OptionName, Values } from "../../core/options.ts";
import { abort, answer, approve, deny, release, retry, steer } from "./act.ts";
import { exportRun, migrate, prune } from "./keep.ts";
import { list, listWorkers } from "./list.ts";
import { listSchedules, pause, resume, unschedule } from "./schedules.ts";
import { checkRuns, show } from "./show.ts";
import { watch } from "./watch.ts";

/** What a verb has to work with. */
export interface Job {
  runs: Runs;
  /** Where the runs are, without a password. */
  place: string;
  values: Values;
  io: Io;
}

type VerbName = keyof typeof COMMANDS.runs.verbs;

interface Verb {
  /** What each argument is, for people. */
  takes: readonly string[];
  /** Options beside `database` and `json`. */
  options?: readonly OptionName[];
  run: (job: Job, ...args: string[]) => Promise<ExitCode>;
  /** It makes what is missing. */
  makes?: boolean;
}

const RUN = "the id of a run (gyre runs list has them)";
const CALL = "the id of a call (gyre runs show has those that wait)";
const SCHEDULE = "the id of a schedule (gyre runs schedules has them)";
const VERBS: Readonly<Record<VerbName, Verb>> = {
  list: {
    takes: [],
    options: ["status", "tenant", "agent", "stuck", "since", "all"],
    run: list,
  },
  show: { takes: [RUN], run: show },
  watch: { takes: [RUN], options: ["after"], run: watch },
  approve: { takes: [RUN, CALL], run: approve },
  deny: { takes: [RUN, CALL], options: ["reason"], run: deny },
  answer: { takes: [RUN, CALL, "the answer, in quotes"], run: answer },
  steer: { takes: [RUN, "a message, in quotes"], run: steer },
  abort: { takes: [RUN], options: ["reason"], run: abort },
  retry: { takes: [RUN], run: retry },
  export: {
    takes: [RUN, "a file to write, such as run.jsonl"],
    options: ["quiet"],
    run: exportRun,
  },
  prune: { takes: [], options: ["older", "quiet"], run: prune },
  schedules: { takes: [], run: listSchedules },
  pause: { takes: [SCHEDULE], run: pause },
  resume: { takes: [SCHEDULE], run: resume },
  unschedule: { takes: [SCHEDULE], run: unschedule },
  workers: { takes: [], run: listWorkers },
  release: { takes: ["the id of a worker (gyre runs workers has them)"], run: release },
  migrate: { takes: [], run: migrate, makes: true },
  doctor: { takes: [], run: checkRuns },
};

const DEFAULT_DATABASE = "file:./runs.db";

/** `gyre runs`: looks after runs of `@gyre/durable`. Throws `UsageError` and `ExitError`. */
export async function runRuns(args: readonly string[], values: Values, io: Io): Promise<ExitCode> {
  const [name = "list", ...given] = args;
  const verb = findVerb(name);
  checkArguments(name, verb, given, values);
  const url = resolveFileUrl(
    values.database ?? (io.env["GYRE_DATABASE"] || DEFAULT_DATABASE),
    io.cwd,
  );
  const place = hidePassword(url);
  if (verb.makes !== true) assertThere(url, place);
  // Loaded here alone: no other command needs a database.
  const { DurableError, openRuns } = await import("@gyre/durable");
  let runs: Runs | undefined;
  try {
    runs = await openRuns(url, {
      migrate: verb.makes === true,
      onError: (error, where) => io.stderr.write(`gyre: ${where}: ${String(error)}\n`),
    });
    return await verb.run({ runs, place, values, io }, ...given);
  } catch (error) {
    if (error instanceof SessionError) {
      throw new ExitError(EXIT.failed, error.message, { cause: error });
    }
    if (!(error instanceof DurableError)) throw error;
    throw explain(error, name, given);
  } finally {
    await runs?.close();
  }
}

function findVerb(name: string): Verb {
  const names = Object.keys(VERBS).filter((each): each is VerbName => Object.hasOwn(VERBS, each));
  const known = names.find((each) => each === name);
  if (known) return VERBS[known];
  const [near] = nearNames(name, names);
  const hint = near ? `Did you mean "${near}"?` : `It takes ${names.join(", ")}.`;
  throw new UsageError(`"runs" cannot "${name}". ${hint}`);
}

function checkArguments(name: string, verb: Verb, given: readonly string[], values: Values): void {
  const { takes, options = [] } = verb;
  const missing = takes[given.length];
  if (missing !== undefined) throw new UsageError(`"runs ${name}" needs ${missing}.`);
  if (given.length > takes.length) {
    throw new UsageError(`"runs ${name}" takes no argument "${given[takes.length] ?? ""}".`);
  }
  const known: readonly string[] = [...options, "database", "json"];
  const foreign = Object.keys(values).find((option) => !known.includes(option));
  if (foreign !== undefined) throw new UsageError(`"runs ${name}" does not take --${foreign}.`);
}

function explainMissing(verb: string, id: string): string {
  switch (verb) {
    case "release":
      return `There is no worker "${id}". Those that there are: gyre runs workers.`;
    case "pause":
    case "resume":
    case "unschedule":
      return `There is no schedule "${id}". Those that there are: gyre runs schedules.`;
    default:
      return `There is no run "${id}". Those that there are: gyre runs list --all.`;
  }
}

/** A command that looks at runs must not make a database where there is none. */
function assertThere(url: string, place: string): void {
  if (!url.startsWith("file:")) return;
  const path = url.startsWith("file://") ? fileURLToPath(url) : url.slice("file:".length);
  if (path === "" || existsSync(path)) return;
  throw new ExitError(
    EXIT.failed,
    `There is no file ${path}. Say where the runs are: --database URL, or GYRE_DATABASE in the environment; gyre runs migrate --database ${place} makes it.`,
  );
}

function hidePassword(url: string): string {
  return url.replace(/:[^:@/]*@/, ":***@");
}

/** An error of the store in terms of this program. */
function explain(
  error: Error & { code: string },
  verb: string,
  [id = ""]: readonly string[],
): ExitError | UsageError {
  const options = { cause: error };
  const fail = (message: string): ExitError => new ExitError(EXIT.failed, message, options);
  switch (error.code) {
    case "bad_url":
      return new UsageError(error.message, options);
    case "not_found":
      return fail(explainMissing(verb, id));
    case "ended":
      return fail(`Run "${id}" has ended: there is nothing to ${verb}. See gyre runs show ${id}.`);
    case "no_driver":
      return error.message.includes("package pg")
        ? fail(
            "Postgres needs the package pg beside gyre: npm install -g pg, as gyre was installed.",
          )
        : fail(error.message);
    case "schema_older":
      return fail(
        error.message.replace("open it once with { migrate: true }", "gyre runs migrate"),
      );
    default:
      return fail(error.message);
  }
}
