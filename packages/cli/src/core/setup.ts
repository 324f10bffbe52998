import { realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { errnoOf, errorMessage } from "@gyre/ai";
import type { Session, SessionStore } from "@gyre/sessions";
import { ExitError, EXIT, UsageError } from "./exit-codes.ts";
import { pickPlace, readFlags } from "./flag-settings.ts";
import type { Io } from "./io.ts";
import { STDERR_LOG } from "@gyre/coding/internal/core/log-file";
import type { Values } from "./options.ts";
import { type LoadedSetup, loadSetup } from "@gyre/coding/internal/harness/load-setup";
import {
  type ChosenSession,
  chooseSessionFile,
  warnOfDamage,
} from "@gyre/coding/internal/harness/session/session-file";

export type { ChosenSession };

/** What a run is set up with: all that the command line, the environment and the files say. */
export interface Setup extends Omit<LoadedSetup, "layers"> {
  layers?: LoadedSetup["layers"];
  /** The folder to work in, absolute. */
  cwd: string;
  /** The key of the model's service, in place of the one that is stored. */
  apiKey?: string;
  /** The page that leads to those about the program. */
  docs?: string;
  /** The file for all that is sent and received, absolute, or `STDERR_LOG`. */
  verbose?: string;
  warn: (text: string) => void;
}

/** How a setup is read. */
export interface SetupOptions {
  /** Warns of nothing that is left out for want of trust: the caller asks about that. */
  quietAboutTrust?: boolean;
  /** The same for files that other agents read as well. */
  quietAboutShared?: boolean;
  /** Called with what is wrong. Default: it goes to stderr. */
  warn?: (text: string) => void;
}

/** Reads it. Throws `UsageError` for what is wrong with the command line. */
export async function readSetup(
  values: Values,
  io: Io,
  {
    quietAboutTrust = false,
    quietAboutShared = false,
    warn = (text) => void io.stderr.write(`gyre: ${text}\n`),
  }: SetupOptions = {},
): Promise<Setup> {
  const cwd = resolve(io.cwd, values.cwd ?? ".");
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(`--cwd "${values.cwd}": there is no such folder.`);
  }
  const place = { ...pickPlace(io), cwd, start: io.cwd, home: homedir() };
  const loaded = await loadSetup({
    ...(await readFlags(values, place)),
    quietAboutTrust,
    quietAboutShared,
    warn,
  });
  const { verbose, "api-key": apiKey } = values;
  if (apiKey !== undefined && loaded.settings.model === undefined) {
    throw new UsageError(
      "--api-key is the key of the model's service: name the model with --model.",
    );
  }
  const docs = findDocs();
  return {
    ...loaded,
    cwd,
    warn,
    ...(docs !== undefined && { docs }),
    ...(apiKey !== undefined && { apiKey }),
    ...(verbose !== undefined && {
      verbose: verbose === STDERR_LOG ? STDERR_LOG : resolve(io.cwd, verbose),
    }),
  };
}

/** As seen from the bundle of the program (`bundle/*.js`). */
const DOCS = new URL("../docs/README.md", import.meta.url);

/** The pages that the package has with it; none where the program was not installed from one. */
function findDocs(): string | undefined {
  const file = fileURLToPath(DOCS);
  return statSync(file, { throwIfNoEntry: false }) ? realpathSync(file) : undefined;
}

/** What to do about a lock that was left behind. */
export function unlockHint(id: string): string {
  return `gyre sessions unlock ${id}`;
}

/** How to go on with a session that another process has open. */
function forkHint(id: string): string {
  return `gyre --resume ${id} --fork`;
}

/** Where the sessions of this user are. */
export async function openStore(io: Pick<Io, "env">) {
  const { defaultSessionFolder, SessionStore } = await import("@gyre/sessions");
  return new SessionStore(defaultSessionFolder(io.env), { forkHint, unlockHint });
}

/** Makes a session in the store. An error of the folder says what to set. */
export async function createStored(
  store: SessionStore,
  cwd: string,
  { headless = false }: { headless?: boolean } = {},
): Promise<Session> {
  try {
    return await store.create({ cwd, ...(headless && { headless }) });
  } catch (error) {
    if (errnoOf(error) !== "write_failed") throw error;
    const hint =
      "Set XDG_STATE_HOME to a folder that may be written to, or use --no-session to write no session.";
    throw new ExitError(EXIT.failed, `${errorMessage(error)}. ${hint}`, { cause: error });
  }
}

/** Finds the session that the command line asks for. `isAttended`: a person is at it. */
export async function chooseSession(
  values: Values,
  { cwd, settings, warn }: Setup,
  io: Io,
  { isAttended = false }: { isAttended?: boolean } = {},
): Promise<ChosenSession> {
  checkSessionOptions(values);
  const { fork, history, resume } = values;
  if (resume === "") {
    throw new UsageError(
      "--resume needs the ID of a session where no person can choose one: `gyre sessions` lists them.",
    );
  }
  if (history !== undefined) return chooseSessionFile(resolve(io.cwd, history), cwd, warn);
  const isGoneOn = values.continue || resume !== undefined;
  if (!isGoneOn && (values["no-session"] || settings.sessions === false)) return {};
  if (values.database !== undefined) return chooseInDatabase(values.database, values, cwd, io);
  const store = await openStore(io);
  if (!isGoneOn) return { newSession: () => createStored(store, cwd, { headless: !isAttended }) };
  const id = resume ?? (await store.latest(cwd, { isAttended }))?.id;
  if (id === undefined) {
    throw noSession(cwd, "`gyre sessions --all` lists those of other folders.");
  }
  const session = await (fork ? forkStored(store, id, cwd, io) : store.open(id));
  warnOfDamage(session, warn);
  return { session };
}

async function forkStored(store: SessionStore, id: string, cwd: string, { env }: Io) {
  const { forkSession } = await import("@gyre/coding/internal/file-history/rewind/fork-history");
  return forkSession(store, id, { cwd, env });
}

/** The same in a database. */
async function chooseInDatabase(
  url: string,
  { continue: isContinued, fork, resume }: Values,
  cwd: string,
  io: Io,
): Promise<ChosenSession> {
  const { openDatabaseSessions } = await import("./database.ts");
  const database = await openDatabaseSessions(url, io.cwd);
  const { storage } = database;
  if (!isContinued && resume === undefined) {
    return { newSession: async () => database.own(await storage.create({ cwd })) };
  }
  try {
    const id = resume ?? (await storage.list({ cwd, limit: 1 }))[0]?.id;
    if (id === undefined) throw noSession(cwd, "Give a prompt without --continue.");
    return { session: database.own(await (fork ? storage.fork(id, { cwd }) : storage.open(id))) };
  } catch (error) {
    await database.close();
    throw error;
  }
}

function noSession(cwd: string, hint: string): ExitError {
  return new ExitError(EXIT.failed, `There is no session of ${cwd} to go on with. ${hint}`);
}

function checkSessionOptions(values: Values): void {
  for (const name of ["history", "no-session"] as const) {
    if (values.database === undefined || !values[name]) continue;
    throw new UsageError(`--database and --${name} cannot be used together.`);
  }
  const sources = (["continue", "resume", "history", "no-session"] as const).filter(
    (name) => values[name] !== undefined && values[name] !== false,
  );
  const [one, other] = sources;
  if (other !== undefined) throw new UsageError(`--${one} and --${other} cannot be used together.`);
  if (values.fork && one !== "continue" && one !== "resume") {
    throw new UsageError("--fork needs --continue or --resume ID: it goes on in a copy of that.");
  }
}
