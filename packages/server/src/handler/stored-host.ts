import { listCalls, type AgentMessage, type Decision } from "@gyre/agent";
import { errnoOf, type FileStore, isRecord } from "@gyre/ai";
import { type Identity, invalidRequest, ProtocolError } from "@gyre/protocol";
import type { EntryBody, Session, SessionStorage, SessionSummary } from "@gyre/sessions";
import { createJournal, type Journal } from "@gyre/sessions/memory";
import { applyChanges } from "../sessions/local-session.ts";
import type { SessionAgent } from "../sessions/session-agent.ts";
import type {
  HostedSession,
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
import { AgentChoice, type AgentFactories, type AgentFactory } from "./agents.ts";

/** What sessions of a server that works in no folder have as one. */
const NO_FOLDER = "/";
/** The entry that says which agent a session has, and who made it. */
const SESSION_KIND = "gyre.session";
/** The entry that says who has answered what an agent asked. */
const DECISION_KIND = "gyre.decision";
/** Of a session that something else has made. */
const NO_USER: Identity = { user: "" };

export interface StoredHostOptions {
  agents: AgentFactories;
  storage: SessionStorage;
  /** Errors whose message no client gets. */
  onError: (error: unknown, where: string) => void;
}

/** What a session was made with. */
interface Origin {
  /** Absent in a session that something else has made: it has the default agent. */
  agent?: string;
  options: SessionOptions;
  identity: Identity;
}

/** Sessions in a storage, whose agents the application makes. */
export class StoredHost implements SessionHost {
  readonly #agents: AgentChoice;
  readonly #storage: SessionStorage;
  readonly #onError: (error: unknown, where: string) => void;

  constructor({ agents, storage, onError }: StoredHostOptions) {
    this.#agents = new AgentChoice(agents);
    this.#storage = storage;
    this.#onError = onError;
  }

  create(
    { agent, ...options }: SessionOptions,
    _key: string,
    identity: Identity = NO_USER,
  ): Promise<HostedSession> {
    return withProtocolErrors(async () => {
      const { name } = this.#agents.find(agent);
      const session = await this.#storage.create({ cwd: NO_FOLDER });
      const origin = { agent: name, options, identity };
      try {
        await appendOrigin(session, origin);
        return await this.#host(session, origin);
      } catch (error) {
        // Nothing was said in it yet.
        await session.close();
        await this.#storage.remove(session.header.id);
        throw error;
      }
    });
  }

  open(id: string, identity?: Identity): Promise<HostedSession | undefined> {
    return withProtocolErrors(async () => {
      const session = await this.#openStored(id);
      if (!session) return undefined;
      try {
        return await this.#host(session, await readOrigin(session, identity));
      } catch (error) {
        await session.close();
        throw error;
      }
    });
  }

  async list(): Promise<readonly SessionInfo[]> {
    return (await this.#storage.list()).map(toInfo);
  }

  async listPage(page: SessionPageRequest): Promise<SessionPage> {
    const { sessions, next } = await this.#storage.listPage(page);
    return { sessions: sessions.map(toInfo), ...(next !== undefined && { next }) };
  }

  async search(request: SessionSearchRequest): Promise<SessionSearchPage> {
    if (!this.#storage.search) {
      throw new ProtocolError("not_implemented", "Texts of sessions cannot be looked for here.");
    }
    const { matches, next } = await this.#storage.search(request);
    return {
      matches: matches.map((match) => ({ ...match, session: toInfo(match.session) })),
      ...(next !== undefined && { next }),
    };
  }

  amend(id: string, changes: SessionAmendment): Promise<boolean> {
    return withProtocolErrors(async () => {
      const session = await this.#openStored(id);
      if (!session) return false;
      await useOpen(session, () => appendAmendment(session, changes));
      return true;
    });
  }

  fork(
    id: string,
    { at }: { at?: number },
    _key: string,
    identity: Identity = NO_USER,
  ): Promise<string | undefined> {
    return withProtocolErrors(async () => {
      const place = await this.#storage.locate(id);
      if (place === undefined) return undefined;
      const source = await this.#storage.open(place, { readOnly: true });
      const origin = await useOpen(source, () => readOrigin(source));
      if (at !== undefined && !source.entries.some((entry) => entry.id === at)) {
        throw invalidRequest(`The session ${id} has no entry ${at}.`);
      }
      const made = await this.#storage.fork(place, at === undefined ? {} : { entry: at });
      await useOpen(made, () => appendOrigin(made, { ...origin, identity }));
      return made.header.id;
    });
  }

  async #openStored(id: string): Promise<Session | undefined> {
    // The name of a stream is a whole id: neither a path nor the beginning of one.
    const place = await this.#storage.locate(id);
    return place === undefined ? undefined : this.#storage.open(place);
  }

  async #host(session: Session, origin: Origin): Promise<HostedSession> {
    const { name, make } = this.#agents.find(origin.agent);
    const known = { ...origin, agent: name };
    const hosted = new StoredSession(session, known, (given) => this.#make(make, given));
    await hosted.start();
    return hosted;
  }

  /** What the application throws is for its own log. */
  async #make(make: AgentFactory, given: Parameters<AgentFactory>[0]): Promise<SessionAgent> {
    try {
      return await make(given);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      this.#onError(error, `making the agent "${given.agent}"`);
      const what = `The agent "${given.agent}" could not be made. The log of the server says why.`;
      throw new ProtocolError("internal_error", what, { cause: error });
    }
  }
}

/** An open session whose agent writes into it. */
class StoredSession implements HostedSession {
  readonly id: string;
  readonly #session: Session;
  readonly #origin: Required<Origin>;
  readonly #make: (given: Parameters<AgentFactory>[0]) => Promise<SessionAgent>;
  #running: { agent: SessionAgent; journal: Journal } | undefined;

  constructor(
    session: Session,
    origin: Required<Origin>,
    make: (given: Parameters<AgentFactory>[0]) => Promise<SessionAgent>,
  ) {
    this.id = session.header.id;
    this.#session = session;
    this.#origin = origin;
    this.#make = make;
  }

  get agent(): SessionAgent {
    return this.#current.agent;
  }

  get files(): FileStore | undefined {
    return this.#session.files;
  }

  readonly info = (): Readonly<Record<string, unknown>> => ({ agent: this.#origin.agent });

  get #current(): { agent: SessionAgent; journal: Journal } {
    if (this.#running) return this.#running;
    throw new Error(`The session ${this.id} has no agent yet.`);
  }

  /** Makes the agent, with what is stored of the session. */
  async start(): Promise<void> {
    const context = await this.#session.context();
    const { messages, pending, interrupted, compaction, queued, unfinished, settings } = context;
    const journal = createJournal(this.#session, context);
    let isStored = false;
    const stored = {
      messages,
      pending,
      queued,
      unfinished,
      ...(interrupted && { interrupted }),
      ...(compaction && { compaction }),
      // Without it nothing of the session would be stored, and no error would say so.
      get sink(): Journal {
        isStored = true;
        return journal;
      },
      middleware: [journal.middleware],
      onQueueChange: journal.onQueueChange,
    };
    const agent = await this.#make({ id: this.id, ...this.#origin, stored });
    if (!isStored) {
      throw new Error(
        `The agent "${this.#origin.agent}" does not store its session: write new Agent({ ...stored, model, tools }).`,
      );
    }
    const { model: _, mode: _mode, mark: _mark, tools = [], ...changes } = settings;
    const known = new Set(agent.state.tools.map(({ name }) => name));
    const left = tools.filter((name) => known.has(name));
    applyChanges(agent, { ...changes, ...(settings.tools && { tools: left }) });
    this.#running = { agent, journal };
  }

  amend(changes: SessionAmendment): Promise<void> {
    return appendAmendment(this.#session, changes);
  }

  async update(changes: SessionChanges): Promise<void> {
    applyChanges(this.agent, changes);
    const { thinkingLevel, systemPrompt, tools } = changes;
    const settings = {
      ...(thinkingLevel !== undefined && { thinkingLevel }),
      ...(systemPrompt !== undefined && { systemPrompt }),
      ...(tools && { tools }),
    };
    if (Object.keys(settings).length > 0)
      await this.#session.append({ type: "settings", settings });
  }

  async decide(
    decisions: Readonly<Record<string, Decision>>,
    identity: Identity = NO_USER,
  ): Promise<void> {
    const data = { calls: Object.keys(decisions), ...toUser(identity) };
    await this.#session.append({ type: "custom", kind: DECISION_KIND, data });
    await this.#current.journal.decide(decisions);
  }

  saved(): Promise<void> {
    return this.#current.journal.saved();
  }

  replaceMessages(messages: readonly AgentMessage[]): Promise<void> {
    const { agent } = this;
    const calls = new Set(
      messages.flatMap((message) =>
        message.role === "assistant" ? listCalls(message).map(({ id }) => id) : [],
      ),
    );
    const questions = agent.state.pending.filter(({ toolCall }) => calls.has(toolCall.id));
    const queues = (["steering", "followUp"] as const).map((queue) => ({
      queue,
      messages: agent.queued(queue),
    }));
    // What waits, waits for the messages that take the place of the others.
    return this.#restart([
      ...messages.map((message) => ({ type: "message", message }) as const),
      ...questions.map(
        ({ toolCall, ...question }) =>
          ({ type: "pending", toolCallId: toolCall.id, ...question }) as const,
      ),
      ...queues.map(
        (each) => ({ type: "queue", ids: each.messages.map(({ id }) => id), ...each }) as const,
      ),
    ]);
  }

  reset(): Promise<void> {
    return this.#restart([]);
  }

  canReopen(): boolean {
    return true;
  }

  async close(): Promise<void> {
    try {
      await this.#stop();
    } finally {
      await this.#session.close();
    }
  }

  async #stop(): Promise<void> {
    this.#running?.agent.abort();
    await this.#running?.agent.waitForIdle();
  }

  /** A branch from the root, with what was set, and an agent that writes there. */
  async #restart(entries: readonly EntryBody[]): Promise<void> {
    const { settings } = await this.#session.context();
    await this.#stop();
    await this.#session.branch(null);
    await appendOrigin(this.#session, this.#origin);
    if (Object.keys(settings).length > 0)
      await this.#session.append({ type: "settings", settings });
    for (const entry of entries) await this.#session.append(entry);
    await this.start();
  }
}

/** Closes a session after its use, whatever came of that. */
async function useOpen<T>(session: Session, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } finally {
    await session.close();
  }
}

async function appendOrigin(session: Session, origin: Origin): Promise<void> {
  const { agent, options, identity } = origin;
  const data = { ...(agent !== undefined && { agent }), options, ...toUser(identity) };
  await session.append({ type: "custom", kind: SESSION_KIND, data });
}

/** The newest counts: a fork has that of the session that it was made from, too. */
async function readOrigin(session: Session, opener?: Identity): Promise<Origin> {
  for (const id of session.findIds("custom").toReversed()) {
    const entry = await session.read(id);
    if (entry.type !== "custom" || entry.kind !== SESSION_KIND || !isRecord(entry.data)) continue;
    const { agent, options, user, tenant } = entry.data;
    const maker: Identity = {
      user: typeof user === "string" ? user : NO_USER.user,
      ...(typeof tenant === "string" && { tenant }),
    };
    const isOpener = opener?.user === maker.user && opener.tenant === maker.tenant;
    return {
      ...(typeof agent === "string" && { agent }),
      options: isRecord(options) ? options : {},
      // Roles are those of today.
      identity: isOpener ? opener : maker,
    };
  }
  return { options: {}, identity: opener ?? NO_USER };
}

/** Roles are not kept: they are what they are when they count. */
function toUser({ user, tenant }: Identity): Identity {
  return { user, ...(tenant !== undefined && { tenant }) };
}

async function appendAmendment(session: Session, changes: SessionAmendment): Promise<void> {
  const { archived, title } = changes;
  if (title !== undefined) await session.append({ type: "title", title });
  if (archived !== undefined) await session.append({ type: "archive", archived });
}

/** Clients need not know where it is stored. */
function toInfo({ path: _path, cwd: _cwd, ...info }: SessionSummary): SessionInfo {
  return info;
}

/** What a storage refuses, with the code that a client can act on. */
async function withProtocolErrors<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof ProtocolError || !(error instanceof Error)) throw error;
    const code = errnoOf(error);
    if (code === "locked") throw new ProtocolError("session_busy", error.message, { cause: error });
    if (code !== "not_found") throw error;
    throw new ProtocolError("session_not_found", error.message, { cause: error });
  }
}
