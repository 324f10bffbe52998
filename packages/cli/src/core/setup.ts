import { statSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { errnoOf, errorMessage } from "@gyre/ai";
import type { Session, SessionFile, SessionStore } from "@gyre/sessions";
import type { McpServerEntry } from "@gyre/tools/mcp";
import { ExitError, EXIT, UsageError } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { STDERR_LOG } from "@gyre/coding/internal/core/log-file";
import type { Values } from "./options.ts";
import { findProjectFile, MCP_FILE } from "@gyre/coding/internal/settings/project-file";
import {
  loadSettings,
  runsSomething,
  type SettingsLayer,
} from "@gyre/coding/internal/settings/load";
import type { Settings } from "@gyre/coding/internal/settings/settings";
import type { TrustedRun } from "@gyre/coding/internal/settings/trusted-run";

/** What a run is set up with: all that the command line, the environment and the files say. */
export interface Setup {
  settings: Settings;
  /** What the command line itself said. */
  explicit: ReadonlySet<keyof Settings>;
  /** The folder to work in, absolute. */
  cwd: string;
  /** The file for all that is sent and received, absolute, or `STDERR_LOG`. */
  verbose?: string;
  /** MCP servers that are set and may be used. */
  mcpServers?: readonly McpServerEntry[];
  /** What a trusted project runs. */
  trusted?: TrustedRun;
  /** What each source says, the first to be replaced first. */
  layers?: readonly SettingsLayer[];
  warn: (text: string) => void;
}

/** How a setup is read. */
export interface SetupOptions {
  /** Warns of nothing that is left out for want of trust: the caller asks about that. */
  quietAboutTrust?: boolean;
  /** Called with what is wrong. Default: it goes to stderr. */
  warn?: (text: string) => void;
}

/** Reads it. Throws `UsageError` for what is wrong with the command line. */
export async function readSetup(
  values: Values,
  io: Io,
  {
    quietAboutTrust = false,
    warn = (text) => void io.stderr.write(`gyre: ${text}\n`),
  }: SetupOptions = {},
): Promise<Setup> {
  const cwd = resolve(io.cwd, values.cwd ?? ".");
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(`--cwd "${values.cwd}": there is no such folder.`);
  }
  const home = homedir();
  const trustOnce = values.trust ?? false;
  const { settings, sources, layers } = await loadSettings({
    env: io.env,
    cwd,
    start: io.cwd,
    home,
    flags: values,
    trustOnce,
    quietAboutTrust,
    warn,
  });
  const hasServers = settings.mcp !== undefined || findProjectFile(cwd, home, MCP_FILE);
  const mcpServers = hasServers
    ? (await import("@gyre/coding/internal/mcp/servers")).mcpServers({
        layers,
        cwd,
        env: io.env,
        home,
        trustOnce,
        quietAboutTrust,
        warn,
      })
    : [];
  const trusted = await findTrustedRun(layers, mcpServers, cwd);
  const names = Object.keys(sources) as (keyof Settings)[];
  const explicit = new Set(names.filter((name) => sources[name] === "command line"));
  const { verbose } = values;
  return {
    settings,
    explicit,
    cwd,
    warn,
    layers,
    ...(mcpServers.length > 0 && { mcpServers }),
    ...(trusted && { trusted }),
    ...(verbose !== undefined && {
      verbose: verbose === STDERR_LOG ? STDERR_LOG : resolve(io.cwd, verbose),
    }),
  };
}

async function findTrustedRun(
  layers: readonly SettingsLayer[],
  mcpServers: readonly McpServerEntry[],
  cwd: string,
): Promise<TrustedRun | undefined> {
  const servers = mcpServers.filter(({ check }) => check !== undefined);
  const runs = layers.some(({ source, settings }) =>
    source === "project file" ? runsSomething(settings) : settings.hooks !== undefined,
  );
  if (!runs && servers.length === 0) return undefined;
  const { readTrustedRun } = await import("@gyre/coding/internal/settings/trusted-run");
  return readTrustedRun(layers, cwd, servers);
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
export async function createStored(store: SessionStore, cwd: string): Promise<Session> {
  try {
    return await store.create({ cwd });
  } catch (error) {
    if (errnoOf(error) !== "write_failed") throw error;
    const hint =
      "Set XDG_STATE_HOME to a folder that may be written to, or use --no-session to write no session.";
    throw new ExitError(EXIT.failed, `${errorMessage(error)}. ${hint}`, { cause: error });
  }
}

/** Which session the command line asks for: one that is there, open, or the way to a new one. */
export interface ChosenSession {
  session?: Session;
  newSession?: () => Promise<Session>;
}

/** Finds it. Neither: nothing is to be written down. */
export async function chooseSession(
  values: Values,
  { cwd, settings, warn }: Setup,
  io: Io,
): Promise<ChosenSession> {
  checkSessionOptions(values);
  const { fork, history, resume } = values;
  if (history !== undefined) return openHistory(resolve(io.cwd, history), cwd, warn);
  const isGoneOn = values.continue || resume !== undefined;
  if (!isGoneOn && (values["no-session"] || settings.sessions === false)) return {};
  const store = await openStore(io);
  if (!isGoneOn) return { newSession: () => createStored(store, cwd) };
  const id = resume ?? (await store.latest(cwd))?.id;
  if (id === undefined) {
    throw new ExitError(
      EXIT.failed,
      `There is no session of ${cwd} to go on with. \`gyre sessions --all\` lists those of other folders.`,
    );
  }
  const session = await (fork ? store.fork(id, { cwd }) : store.open(id));
  warnOfProblems(session, warn);
  return { session };
}

async function openHistory(path: string, cwd: string, warn: Setup["warn"]): Promise<ChosenSession> {
  const { createSession, openSession } = await import("@gyre/sessions");
  const found = statSync(path, { throwIfNoEntry: false });
  const isNew = !found || (found.isFile() && found.size === 0);
  if (isNew) return { newSession: () => createSession(path, { cwd }) };
  const session = await openSession(path);
  warnOfProblems(session, warn);
  return { session };
}

function warnOfProblems({ path, problems }: SessionFile, warn: Setup["warn"]): void {
  for (const { line, message } of problems) warn(`${path}, line ${line}: ${message}`);
}

function checkSessionOptions(values: Values): void {
  const sources = (["continue", "resume", "history", "no-session"] as const).filter(
    (name) => values[name] !== undefined && values[name] !== false,
  );
  const [one, other] = sources;
  if (other !== undefined) throw new UsageError(`--${one} and --${other} cannot be used together.`);
  if (values.fork && one !== "continue" && one !== "resume") {
    throw new UsageError("--fork needs --continue or --resume ID: it goes on in a copy of that.");
  }
}
