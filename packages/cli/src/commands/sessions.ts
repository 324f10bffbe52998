import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { type Clock, nearNames, systemClock, errorMessage } from "@gyre/ai";
import {
  defaultSessionFolder,
  type Entry,
  findFileProblems,
  openSession,
  SessionError,
  type SessionFile,
  SessionStore,
} from "@gyre/sessions";
import { sanitize } from "@gyre/tools";
import { EXIT, ExitError, UsageError } from "../core/exit-codes.ts";
import type { Io, Sink } from "../core/io.ts";
import type { Values } from "../core/options.ts";
import { agoText, entryText, sizeText, timeText } from "../text/session-text.ts";
import { unlockHint } from "../core/setup.ts";
import { fit } from "../core/terminal.ts";
import { readBeginning } from "../core/read-beginning.ts";
import { alignColumns } from "../text/columns.ts";
import { sessionTitle } from "@gyre/coding/internal/conversation/prompt-text";

type ImportPiSession = typeof import("@gyre/sessions/pi").importPiSession;

const MAX_TITLE_COLUMNS = 72;
const GAP = "  ";
/** A header is shorter. */
const HEADER_BYTES = 64 * 1024;

/** What a verb has to work with. */
interface Job {
  store: SessionStore;
  values: Values;
  io: Io;
  clock: Clock;
  /** The folder whose sessions are meant. */
  cwd: string;
}

interface Verb {
  /** What it is done to, for people. */
  takes: string;
  run: (what: string, job: Job) => Promise<number>;
}

const VERBS: Readonly<Record<string, Verb>> = {
  show: { takes: "the id of a session, or a file", run: show },
  path: { takes: "the id of a session", run: path },
  fork: { takes: "the id of a session", run: fork },
  import: { takes: "a session file, of gyre or of pi", run: importFile },
  check: { takes: "the id of a session, or a file", run: check },
  unlock: { takes: "the id of a session", run: unlock },
  remove: { takes: "the id of a session", run: remove },
};

/**
 * `gyre sessions`: lists sessions, or does something to one. An id may be cut short as long
 * as it means one session. Throws `UsageError` and `ExitError`.
 */
export async function runSessions(
  args: readonly string[],
  values: Values,
  io: Io,
  parts: { clock?: Clock } = {},
): Promise<number> {
  const { clock = systemClock } = parts;
  const store = new SessionStore(defaultSessionFolder(io.env), { clock, unlockHint });
  const job: Job = { store, values, io, clock, cwd: resolve(io.cwd, values.cwd ?? ".") };
  const [name, what, ...more] = args;
  if (name === undefined) return list(job);
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (!verb) {
    const [near] = nearNames(name, Object.keys(VERBS));
    const hint = near ? `Did you mean "${near}"?` : `It takes ${Object.keys(VERBS).join(", ")}.`;
    throw new UsageError(`"sessions" cannot "${name}". ${hint}`);
  }
  if (what === undefined) throw new UsageError(`"sessions ${name}" needs ${verb.takes}.`);
  if (more.length > 0) throw new UsageError(`"sessions ${name}" takes ${verb.takes}, no more.`);
  try {
    return await verb.run(what, job);
  } catch (error) {
    if (!(error instanceof SessionError)) throw error;
    throw new ExitError(EXIT.failed, error.message, { cause: error });
  }
}

async function list({ store, values, io, clock, cwd }: Job): Promise<number> {
  const sessions = await store.list(values.all ? {} : { cwd });
  if (values.json) {
    io.stdout.write(`${JSON.stringify(sessions, null, 2)}\n`);
    return EXIT.done;
  }
  if (sessions.length === 0) {
    const text = values.all
      ? "There are no sessions."
      : `There are no sessions of ${shown(cwd)}. Those of all folders: gyre sessions --all.`;
    io.stderr.write(`${text}\n`);
    return EXIT.done;
  }
  const now = clock.now();
  const rows = sessions.map((session) => [
    shown(session.id),
    agoText(session.updatedAt, now),
    sizeText(session.bytes),
    ...(values.all ? [shown(session.cwd) || "(unknown folder)"] : []),
    fit(
      `${session.archived ? "(archived) " : ""}${shown(sessionTitle(session) ?? "(nothing was asked)")}`,
      MAX_TITLE_COLUMNS,
    ),
  ]);
  for (const row of alignColumns(rows)) io.stdout.write(`${row}\n`);
  return EXIT.done;
}

function shown(text: string): string {
  return sanitize(text, { keepNewlines: false });
}

/** The conversation as it stands; as JSON, every entry of the file, those of other branches too. */
async function show(id: string, { store, values, io }: Job): Promise<number> {
  return using(await openEither(id, store, io), async (session) => {
    const ids = values.json ? session.entries.map((entry) => entry.id) : session.findBranch();
    if (!values.json) io.stdout.write(headText(session));
    for (const entryId of ids) {
      if (io.signal.aborted) return EXIT.interrupted;
      const entry = await readOr(session, entryId, io.stderr);
      if (!entry) continue;
      const text = values.json ? JSON.stringify(entry) : entryText(entry);
      if (text !== "") io.stdout.write(`${text}\n`);
    }
    writeProblems(session, io.stderr);
    return EXIT.done;
  });
}

/** One that cannot be read any more is reported; the others are shown. */
async function readOr(session: SessionFile, id: number, to: Sink): Promise<Entry | undefined> {
  try {
    return await session.read(id);
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== "unreadable") throw error;
    to.write(`${shown(error.message)}\n`);
    return undefined;
  }
}

function headText({ header }: SessionFile): string {
  const { createdAt, cwd, from, id } = header;
  const origin = from?.session ?? from?.file;
  return [
    `Session ${shown(id)}, begun ${timeText(createdAt)}`,
    `Folder: ${shown(cwd)}`,
    ...(origin === undefined ? [] : [`Made from: ${shown(origin)}`]),
    "",
    "",
  ].join("\n");
}

async function path(id: string, { store, io }: Job): Promise<number> {
  io.stdout.write(`${(await store.find(id)).path}\n`);
  return EXIT.done;
}

async function fork(id: string, { store, values, io, cwd }: Job): Promise<number> {
  const session = await store.fork(id, values.cwd === undefined ? {} : { cwd });
  await session.close();
  io.stdout.write(`${session.header.id}\n`);
  return EXIT.done;
}

async function importFile(name: string, job: Job): Promise<number> {
  const { values, io } = job;
  const file = resolve(io.cwd, name);
  // Loaded here alone: no other command reads files of pi.
  const pi = await import("@gyre/sessions/pi");
  const { id, path, skipped } = pi.isPiHeader(await firstLine(file))
    ? await importPi(pi.importPiSession, file, job)
    : { ...(await addFile(file, job)), skipped: [] };
  if (values.json) {
    io.stdout.write(`${JSON.stringify({ id, path, skipped })}\n`);
    return EXIT.done;
  }
  io.stdout.write(`${id}\n`);
  if (skipped.length > 0) io.stderr.write("Not everything could be brought over:\n");
  for (const { line, type, why } of skipped) {
    io.stderr.write(`${GAP}line ${line}, ${shown(type)}: ${shown(why)}\n`);
  }
  return EXIT.done;
}

/** A file that was elsewhere can have been edited there: its settings are no longer known as our own. */
async function addFile(file: string, { store, cwd }: Job): Promise<{ id: string; path: string }> {
  const { id, path } = await store.add(file, { cwd });
  await using(await store.open(path), async (session) => {
    const { settings } = await session.context();
    if (settings.mark === undefined) return;
    await session.append({ type: "settings", settings: { mark: "" } });
  });
  return { id, path };
}

async function importPi(importPiSession: ImportPiSession, file: string, { store, cwd }: Job) {
  let made: SessionFile | undefined;
  try {
    const { session, skipped } = await importPiSession(file, async (header) => {
      made = await store.create({ ...header, cwd: header.cwd || cwd });
      return made;
    });
    await session.close();
    return { id: session.header.id, path: session.path, skipped };
  } catch (error) {
    // Half a session is of no use.
    if (made) {
      await rm(made.path, { force: true });
      await rm(`${made.path}.files`, { recursive: true, force: true });
    }
    throw error;
  }
}

/** The object on the first line of a file, if there is one. */
async function firstLine(file: string): Promise<unknown> {
  try {
    const [line = ""] = (await readBeginning(file, HEADER_BYTES)).split("\n");
    return JSON.parse(line) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    const reason = errorMessage(error);
    throw new ExitError(EXIT.failed, `${shown(file)} cannot be read: ${reason}`, { cause: error });
  }
}

async function check(what: string, { store, values, io }: Job): Promise<number> {
  return using(await openEither(what, store, io), async (session) => {
    const { entries, problems } = session;
    const files = await findFileProblems(session);
    const isSound = problems.length + files.length === 0;
    if (values.json) io.stdout.write(`${JSON.stringify([...problems, ...files], null, 2)}\n`);
    else if (!isSound) {
      writeProblems(session, io.stdout);
      for (const { entry, message } of files) io.stdout.write(`entry ${entry}: ${message}\n`);
    } else {
      const count = `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`;
      io.stdout.write(`No problems; ${count}.\n`);
    }
    return isSound ? EXIT.done : EXIT.failed;
  });
}

/** An id takes precedence over a file of the same name. */
async function openEither(what: string, store: SessionStore, io: Io): Promise<SessionFile> {
  let path: string;
  try {
    ({ path } = await store.find(what));
  } catch (error) {
    path = resolve(io.cwd, what);
    const isFile = error instanceof SessionError && error.code === "not_found" && existsSync(path);
    if (!isFile) throw error;
  }
  return openSession(path, { readOnly: true });
}

function writeProblems({ problems }: SessionFile, to: Sink): void {
  for (const { kind, line, offset, bytes, message } of problems) {
    to.write(`line ${line} (${bytes} bytes at ${offset}), ${kind}: ${shown(message)}\n`);
  }
}

async function unlock(id: string, { store, io }: Job): Promise<number> {
  const holder = await store.unlock(id);
  if (holder === undefined) io.stdout.write("It is not locked.\n");
  else if (holder === "unknown") io.stdout.write("Removed a lock that did not say whose it was.\n");
  else {
    const { host, pid, since } = holder;
    const whose = `process ${pid} on ${shown(host)}`;
    io.stdout.write(`Removed the lock of ${whose}, held since ${timeText(since)}.\n`);
  }
  return EXIT.done;
}

async function remove(id: string, { store, io }: Job): Promise<number> {
  const session = await store.find(id);
  await store.remove(session.id);
  const { removeHistory } = await import("@gyre/coding/internal/file-history/lines/folders");
  await removeHistory(io.env, session.id);
  io.stdout.write(`Removed ${session.id}.\n`);
  return EXIT.done;
}

async function using<T>(
  session: SessionFile,
  work: (session: SessionFile) => Promise<T>,
): Promise<T> {
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}
