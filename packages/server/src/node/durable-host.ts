import { createHash } from "node:crypto";
import type { Runs } from "@gyre/durable";
import { errnoOf } from "@gyre/ai";
import { invalidRequest } from "@gyre/protocol";
import type {
  SessionAmendment,
  SessionChanges,
  SessionHost,
  SessionInfo,
  SessionOptions,
  SessionPage,
  SessionPageRequest,
  SessionSearchPage,
  SessionSearchRequest,
} from "../sessions/session-host.ts";
import { DurableSession } from "./durable-session.ts";
import { refuseOnError } from "./refusal.ts";
import type { Settings } from "./session-mirror.ts";
import { ToolLeases } from "./tool-leases.ts";

/** Where a session belongs. */
export interface StoredPlace {
  readonly id: string;
  readonly cwd: string;
  readonly pool: string;
}

/** What a new session begins with. */
export interface NewDurableSession {
  /** The folder that it works in. */
  cwd?: string;
  /** What its agent finds in `OpenRun.settings`. */
  settings?: Settings;
}

export interface DurableHostOptions {
  /** Where sessions are kept. */
  readonly runs: Runs;
  /** The name of the agent that works on them. */
  readonly agent: string;
  readonly tenant?: string;
  /** New sessions are bound to it: workers of this pool alone work on them. */
  readonly pool?: string;
  /** Sessions of this folder are listed. Default "", which is that of sessions without one. */
  readonly cwd?: string;
  /** What a client may ask for in a new session; throws what is wrong with it. Default: nothing. */
  readonly prepare?: (options: SessionOptions) => Promise<NewDurableSession>;
  /**
   * The settings that a change of a client means; throws what is wrong with it. Default: thinking
   * level, system prompt and tools can be changed.
   */
  readonly readChanges?: (changes: SessionChanges) => Promise<Settings>;
  /** Throws where a session may not be opened here: for its folder, say. */
  readonly check?: (session: StoredPlace) => void;
  /**
   * How long a run waits for a client of one of its tools that is away, and how long the tools of
   * one stay that has left. Default 30,000.
   */
  readonly toolGraceMs?: number;
  /** Errors that no client gets. */
  readonly onError?: (error: unknown, where: string) => void;
}

const TOOL_GRACE_MS = 30_000;
/** Runs that are looked at to know which sessions of a list have one. */
const MAX_OPEN_RUNS = 1_000;

/**
 * Sessions of a durable store, for any number of servers: each of them answers every client, and a
 * run goes on when the server that a client came by is gone.
 */
export class DurableHost implements SessionHost {
  readonly isShared = true;
  readonly #options: DurableHostOptions;
  readonly #sessions: ReturnType<Runs["sessions"]>;
  readonly #leases: ToolLeases;
  readonly #onError: (error: unknown, where: string) => void;

  constructor(options: DurableHostOptions) {
    const { runs, tenant = "", pool = "", toolGraceMs = TOOL_GRACE_MS } = options;
    this.#options = options;
    this.#onError = options.onError ?? ((error, where) => runs.report(error, where));
    this.#leases = new ToolLeases(runs, toolGraceMs, this.#onError);
    this.#sessions = runs.sessions({ tenant, pool });
  }

  create(options: SessionOptions, key: string): Promise<DurableSession> {
    return refuseOnError(() => this.#create(options, key));
  }

  async #create(options: SessionOptions, key: string): Promise<DurableSession> {
    const { runs, prepare, tenant = "", pool = "" } = this.#options;
    const { cwd = this.#cwd, settings } = (await prepare?.(options)) ?? {};
    const id = computeId(key);
    const createdAt = Date.now();
    const head = { id: 1, parentId: null, timestamp: createdAt };
    const entries = settings
      ? [{ ...head, type: "settings" as const, data: JSON.stringify({ settings }) }]
      : [];
    await runs.store.sessions.create({
      ...{ id, tenant, pool, cwd, createdAt, entries },
      leaf: settings ? 1 : null,
    });
    return this.#open({ id, cwd, pool });
  }

  open(id: string): Promise<DurableSession | undefined> {
    return refuseOnError(async () => {
      const { runs, tenant = "", check } = this.#options;
      const found = isName(id) ? await runs.store.sessions.read(tenant, id) : undefined;
      if (!found) return undefined;
      check?.(found);
      return this.#open(found);
    });
  }

  list(): Promise<readonly SessionInfo[]> {
    return refuseOnError(async () => this.#describe(await this.#sessions.list({ cwd: this.#cwd })));
  }

  listPage({ allFolders, ...page }: SessionPageRequest): Promise<SessionPage> {
    return refuseOnError(async () => {
      const folder = allFolders ? {} : { cwd: this.#checkListed(page.cwd) };
      const { sessions, ...more } = await this.#sessions.listPage({ ...page, ...folder });
      return { ...more, sessions: await this.#describe(sessions) };
    });
  }

  isServed({ id, cwd }: SessionInfo): boolean {
    const { check, pool = "" } = this.#options;
    if (!check) return true;
    try {
      check({ id, cwd: String(cwd), pool });
      return true;
    } catch {
      // A list says nothing of a session that cannot be opened.
      return false;
    }
  }

  describe(id: string): Promise<SessionInfo | undefined> {
    return refuseOnError(async () => {
      if (!(await this.#has(id))) return undefined;
      return (await this.#describe([await this.#sessions.find(id)]))[0];
    });
  }

  search(request: SessionSearchRequest): Promise<SessionSearchPage> {
    return refuseOnError(async () => {
      const cwd = this.#checkListed(request.cwd);
      const { matches, next } = await this.#sessions.search({ ...request, cwd });
      return {
        matches: matches.map((match) => ({ ...match, session: { ...match.session } })),
        ...(next !== undefined && { next }),
      };
    });
  }

  /** The folder whose sessions are listed. */
  #checkListed(cwd = this.#cwd): string {
    if (cwd !== this.#cwd) this.#options.check?.({ id: "", cwd, pool: this.#options.pool ?? "" });
    return cwd;
  }

  amend(id: string, { archived, title }: SessionAmendment): Promise<boolean> {
    return refuseOnError(async () => {
      if (!(await this.#has(id))) return false;
      const session = await this.#sessions.open(id);
      try {
        if (title !== undefined) await session.append({ type: "title", title });
        if (archived !== undefined) await session.append({ type: "archive", archived });
      } finally {
        await session.close();
      }
      return true;
    });
  }

  fork(id: string, { at }: { at?: number }, key: string): Promise<string | undefined> {
    return refuseOnError(async () => {
      if (!(await this.#has(id))) return undefined;
      const newId = computeId(key);
      if (await this.#has(newId)) return newId;
      const options = { newId, ...(at !== undefined && { entry: at }) };
      try {
        const session = await this.#sessions.fork(id, options);
        await session.close();
      } catch (error) {
        if (errnoOf(error) !== "not_found") throw error;
        throw invalidRequest(`The session ${id} has no entry ${at}.`, { cause: error });
      }
      return newId;
    });
  }

  /** Whether there is a session that may be opened here. */
  async #has(id: string): Promise<boolean> {
    const { runs, tenant = "", check } = this.#options;
    const found = isName(id) ? await runs.store.sessions.read(tenant, id) : undefined;
    if (found) check?.(found);
    return found !== undefined;
  }

  get #cwd(): string {
    return this.#options.cwd ?? "";
  }

  async #describe(sessions: readonly { id: string }[]): Promise<SessionInfo[]> {
    const { runs, tenant = "" } = this.#options;
    const status = ["ready", "running"] as const;
    const open = await runs.list({ tenant, status, limit: MAX_OPEN_RUNS });
    const running = new Set(open.runs.map(({ session }) => session));
    return sessions.map((session) => ({ ...session, isRunning: running.has(session.id) }));
  }

  #open({ id, cwd, pool }: StoredPlace): Promise<DurableSession> {
    const { runs, agent, tenant = "" } = this.#options;
    const { readChanges = readPlainChanges } = this.#options;
    return DurableSession.open({
      ...{ runs, id, cwd, agent, tenant, pool, readChanges },
      ...{ leases: this.#leases, onError: this.#onError },
    });
  }
}

/** The same request, sent to another server, makes no second session. */
function computeId(key: string): string {
  return `s-${createHash("sha256").update(key).digest("hex").slice(0, 32)}`;
}

/** Whether a store can have a session of this id. */
function isName(id: string): boolean {
  return id !== "" && !/\0|\p{Cs}/u.test(id);
}

async function readPlainChanges(changes: SessionChanges): Promise<Settings> {
  const { thinkingLevel, systemPrompt, tools, ...other } = changes;
  const [name] = Object.keys(other);
  if (name !== undefined) throw invalidRequest(`"${name}" cannot be changed here.`);
  return {
    ...(thinkingLevel !== undefined && { thinkingLevel }),
    ...(systemPrompt !== undefined && { systemPrompt }),
    ...(tools && { tools }),
  };
}
