import { existsSync, realpathSync } from "node:fs";
import { resolve, sep } from "node:path";
import { errnoOf, errorMessage, type FileStore, systemClock } from "@gyre/ai";
import { type Agent, type AgentMessage, type Decision, listCalls } from "@gyre/agent";
import type { ReviewPlan } from "@gyre/coding/internal/conversation/plan";
import type { Models } from "@gyre/coding/internal/models/models";
import type { AskQuestion } from "@gyre/mcp";
import type { PermissionMode } from "@gyre/tools";
import { type Payload, ProtocolError } from "@gyre/protocol";
import {
  applyChanges,
  type HostAnswer,
  type HostedSession,
  type SessionAmendment,
  type SessionChanges,
  type SessionHost,
  type SessionInfo,
  type SessionOptions,
  type SessionPage,
  type SessionPageRequest,
  type SessionPrompt,
  type SessionSearchPage,
  type SessionSearchRequest,
} from "@gyre/server";
import {
  type EntryBody,
  type Session,
  SessionError,
  type SessionSettings,
  type SessionStorage,
} from "@gyre/sessions";
import type { Outcome } from "@gyre/coding/internal/conversation/types";
import { EXIT, toExitCode, UsageError } from "../../core/exit-codes.ts";
import {
  assertMode,
  assertModel,
  type Ceilings,
  isToolWithin,
} from "@gyre/coding/internal/harness/ceilings";
import type { Approvals, Harness, HarnessOptions } from "@gyre/coding/internal/harness/harness";
import type { Io } from "../../core/io.ts";
import type { Values } from "../../core/options.ts";
import { isMode, MODE_NAMES, modelValue } from "@gyre/coding/internal/text/choices";
import type { CommandPlace, SessionRequests } from "./session-requests.ts";
import type { PlanQuestions } from "./plan-questions.ts";
import type { ServerQuestions } from "./server-questions.ts";
import type { StatusReader } from "./session-status.ts";

/** What holds for a folder, which may have settings of its own. */
export interface RpcFolder {
  cwd: string;
  /** Absent: nothing is written down. */
  store?: SessionStorage;
  /** What a harness of this folder is opened with, but for its session; for runs of workers. */
  harness?: Omit<HarnessOptions, "approvals">;
  /** For slash commands of clients; absent: there are none. */
  place?: CommandPlace;
  /** Loads the modules that sessions need: the first one takes no longer than others. */
  loadTools?(): Promise<void>;
  open(options: {
    approvals: Approvals;
    answerServer?: AskQuestion;
    reviewPlan?: ReviewPlan;
    canReviewPlan?: () => boolean;
    session?: Session;
    /** See `HarnessOptions`. */
    keepsRights: boolean;
    rehearse?: boolean;
    ceilings?: Ceilings;
  }): Promise<Harness>;
}

/** Reads what holds for a command line; throws what is wrong with it. */
export type RpcSetup = (values: Values) => Promise<RpcFolder>;

/** The setup of the program itself: settings, models and sessions as for every other command. */
export function rpcSetup(io: Io): RpcSetup {
  let store: Promise<SessionStorage> | undefined;
  return async (values) => {
    const [{ openStore, readSetup }, { openHarness }] = await Promise.all([
      import("../../core/setup.ts"),
      import("@gyre/coding/internal/harness/harness"),
    ]);
    const setup = await readSetup(values, io);
    const isKept = setup.settings.sessions !== false && !values["no-session"];
    const harness = { ...setup, env: io.env, onForeignCode: io.onForeignCode };
    return {
      cwd: setup.cwd,
      harness,
      place: { setup, env: io.env },
      loadTools: () => loadTools(setup.cwd, io.env),
      open: (options) => openHarness({ ...harness, ...options }),
      // One for all: it knows the names that it has read.
      ...(isKept && { store: await (store ??= openStore(io)) }),
    };
  };
}

/** Runs nothing: the tools of a folder are made, and left. */
async function loadTools(root: string, environment: Io["env"]): Promise<void> {
  const [{ openToolset }] = await Promise.all([
    import("@gyre/tools"),
    import("@gyre/coding/internal/models/default-model"),
  ]);
  const toolset = await openToolset({ root, environment, sandbox: "none" });
  await toolset.close();
}

/** What `session_create` may ask for, and the option of the command line that says the same. */
const OPTIONS = {
  cwd: "cwd",
  model: "model",
  thinkingLevel: "thinking",
  tools: "tools",
  mode: "mode",
} as const;

export interface RpcHostOptions {
  /** What relative folders are from. */
  start: string;
  /** The most that sessions may have. Absent: the command line has defaults alone. */
  ceilings?: Ceilings;
}

/** What a new session is set to. */
export interface PlannedSession {
  cwd: string;
  settings: SessionSettings;
}

/** Sessions as `gyre rpc` has them: each with a folder, tools and permissions of its own. */
export class RpcHost implements SessionHost {
  readonly #values: Values;
  readonly #setup: RpcSetup;
  readonly #start: string;
  readonly #ceilings: Ceilings | undefined;
  /** For sessions that are not written down. */
  #made = 0;

  constructor(values: Values, setup: RpcSetup, { ceilings, start }: RpcHostOptions) {
    this.#values = values;
    this.#start = start;
    this.#setup = setup;
    this.#ceilings = ceilings;
  }

  /** Loads what every session needs, and the names of those that are stored, before the first client comes. */
  async prepare(): Promise<void> {
    const setup = await this.#setup(this.#values);
    await setup.store?.prepare?.();
    await setup.loadTools?.();
  }

  create(options: SessionOptions): Promise<HostedSession> {
    return withProtocolErrors(async () => {
      const asked = toValues(options);
      assertWithin(options, this.#ceilings);
      const folder = await this.#enter(asked);
      const session = await folder.store?.create({ cwd: folder.cwd });
      try {
        return await this.#host(folder, session, false);
      } catch (error) {
        // Nothing was said in it yet.
        if (session) await folder.store?.remove(session.header.id);
        throw error;
      }
    });
  }

  open(id: string): Promise<HostedSession | undefined> {
    return withProtocolErrors(async () => {
      const { store } = await this.#setup(this.#values);
      // The name of a stream is a whole id: neither a path nor the beginning of one.
      const path = await store?.locate(id);
      const session = path === undefined ? undefined : await store?.open(path);
      if (!session) return undefined;
      const folder = await this.#enter({ cwd: session.header.cwd }).catch(
        async (error: unknown) => {
          await session.close();
          throw error;
        },
      );
      return this.#host(folder, session, true);
    });
  }

  /** What a session that is kept elsewhere begins with. Throws what a client may not have. */
  plan(options: SessionOptions, models: Pick<Models, "find">): Promise<PlannedSession> {
    return withProtocolErrors(async () => {
      const asked = toValues(options);
      assertWithin(options, this.#ceilings);
      const { cwd, harness } = await this.#enter(asked);
      const { thinking, tools, mode = "ask" } = harness?.settings ?? {};
      const model = asked.model === undefined ? undefined : await models.find(asked.model);
      if (model) assertModel(model, this.#ceilings);
      return {
        cwd,
        settings: {
          ...(model && { model: { provider: model.provider, id: model.id } }),
          ...(thinking && { thinkingLevel: thinking }),
          ...(tools && { tools }),
          mode,
        },
      };
    });
  }

  /** The settings that a change of a session which is kept elsewhere means. */
  readChanges(changes: SessionChanges, models: Pick<Models, "find">): Promise<SessionSettings> {
    return withProtocolErrors(async () => {
      const { model, thinkingLevel, systemPrompt, tools, modes = {} } = changes;
      const mode = parseMode(modes.permission);
      if (modes.steering !== undefined || modes.followUp !== undefined) {
        throw new UsageError(
          "How queues are read cannot be changed where sessions are in a database.",
        );
      }
      assertWithin({ mode, tools }, this.#ceilings);
      const found = model === undefined ? undefined : await models.find(model);
      if (found) assertModel(found, this.#ceilings);
      return {
        ...(found && { model: { provider: found.provider, id: found.id } }),
        ...(thinkingLevel !== undefined && { thinkingLevel }),
        ...(systemPrompt !== undefined && { systemPrompt }),
        ...(tools && { tools }),
        ...(mode && { mode }),
      };
    });
  }

  /** What a harness is opened with for a run that a worker does in a folder. */
  async readHarness(cwd: string): Promise<HarnessOptions> {
    const { harness } = await this.#enter({ cwd });
    if (!harness) throw new Error("Runs of workers are not opened here.");
    const ceilings = this.#ceilings;
    return {
      ...{ ...harness, approvals: "suspend", keepsRights: true },
      ...(ceilings && { ceilings }),
    };
  }

  list(): Promise<readonly SessionInfo[]> {
    return withProtocolErrors(async () => {
      const { store } = await this.#setup(this.#values);
      const sessions = (await store?.list({ cwd: this.#ownFolder })) ?? [];
      return sessions.map((summary) => ({ ...summary }));
    });
  }

  listPage({ allFolders, ...page }: SessionPageRequest): Promise<SessionPage> {
    return withProtocolErrors(async () => {
      const { store } = await this.#setup(this.#values);
      const folder = allFolders ? {} : { cwd: this.#findListed(page.cwd) };
      const found = await store?.listPage({ ...page, ...folder });
      const { sessions = [], ...more } = found ?? {};
      return { ...more, sessions: sessions.map((summary) => ({ ...summary })) };
    });
  }

  isServed({ cwd }: SessionInfo): boolean {
    try {
      this.#assertFolder(this.#realFolder(String(cwd)));
      return true;
    } catch {
      // A list says nothing of a session that cannot be opened.
      return false;
    }
  }

  describe(id: string): Promise<SessionInfo | undefined> {
    return withProtocolErrors(async () => {
      const { store } = await this.#setup(this.#values);
      const path = await store?.locate(id);
      return store && path !== undefined ? { ...(await store.find(id)) } : undefined;
    });
  }

  search(request: SessionSearchRequest): Promise<SessionSearchPage> {
    return withProtocolErrors(async () => {
      const { store } = await this.#setup(this.#values);
      const found = await store?.search?.({ ...request, cwd: this.#findListed(request.cwd) });
      const { matches = [], next } = found ?? {};
      return {
        matches: matches.map((match) => ({ ...match, session: { ...match.session } })),
        ...(next !== undefined && { next }),
      };
    });
  }

  /** The folder whose sessions are listed: one that is asked for has to be served. */
  #findListed(asked: string | undefined): string {
    if (asked === undefined) return this.#ownFolder;
    const cwd = this.#realFolder(asked);
    this.#assertFolder(cwd);
    return cwd;
  }

  amend(id: string, changes: SessionAmendment): Promise<boolean> {
    return withProtocolErrors(async () => {
      const stored = await this.#findStored(id);
      if (!stored) return false;
      const session = await stored.store.open(stored.path);
      try {
        await appendAmendment(session, changes);
      } finally {
        await session.close();
      }
      return true;
    });
  }

  fork(id: string, { at }: { at?: number }): Promise<string | undefined> {
    return withProtocolErrors(async () => {
      const stored = await this.#findStored(id);
      if (!stored) return undefined;
      const { path, session, store } = stored;
      if (at !== undefined && !session.entries.some((entry) => entry.id === at)) {
        throw new UsageError(`The session ${id} has no entry ${at}.`);
      }
      const made = await store.fork(path, at === undefined ? {} : { entry: at });
      await made.close();
      return made.header.id;
    });
  }

  /** A session whose folder is served, as it was read. */
  async #findStored(
    id: string,
  ): Promise<{ store: SessionStorage; path: string; session: Session } | undefined> {
    const { store } = await this.#setup(this.#values);
    const path = await store?.locate(id);
    if (!store || path === undefined) return undefined;
    const session = await store.open(path, { readOnly: true });
    await session.close();
    this.#assertFolder(this.#realFolder(session.header.cwd));
    return { store, path, session };
  }

  /** The folder whose sessions are listed. Sessions are made in real folders. */
  get ownFolder(): string {
    return this.#ownFolder;
  }

  get #ownFolder(): string {
    return this.#realFolder(this.#values.cwd);
  }

  /** Opens the folder of a session. Only the folder of the command line has its trust. */
  async #enter(asked: Values): Promise<RpcFolder> {
    const own = this.#ownFolder;
    const cwd = asked.cwd === undefined ? own : this.#realFolder(asked.cwd);
    this.#assertFolder(cwd);
    const { trust = false } = this.#values;
    return this.#setup({ ...this.#values, ...asked, cwd, trust: trust && cwd === own });
  }

  /** Throws where sessions of a folder are not served. */
  checkFolder(folder: string): void {
    try {
      this.#assertFolder(this.#realFolder(folder));
    } catch (error) {
      throw new ProtocolError("invalid_request", errorMessage(error), { cause: error });
    }
  }

  #assertFolder(cwd: string): void {
    const { roots, secret = [] } = this.#ceilings ?? {};
    const isSecret = secret.some((place) => isWithin(cwd, this.#realFolder(place)));
    if (isSecret || (roots && !roots.some((root) => isWithin(cwd, root)))) {
      throw new UsageError("This folder is not one that the server works in.");
    }
  }

  /** Where a folder is, links followed. One that is not there is refused when it is opened. */
  #realFolder(folder = "."): string {
    if (folder.includes("\0")) throw new UsageError('"cwd" has a NUL character in it.');
    const path = resolve(this.#start, folder);
    return existsSync(path) ? realpathSync(path) : path;
  }

  /** What a new session was given is in its file before a client has its id. */
  async #host(
    folder: RpcFolder,
    session: Session | undefined,
    isStored: boolean,
  ): Promise<HostedSession> {
    const id = session?.header.id ?? `unsaved-${++this.#made}`;
    const ceilings = this.#ceilings;
    const [{ ServerQuestions }, { PlanQuestions }] = await Promise.all([
      import("./server-questions.ts"),
      import("./plan-questions.ts"),
    ]);
    const questions = new ServerQuestions(systemClock);
    const plans = new PlanQuestions(systemClock);
    const open = (keepsRights: boolean): Promise<Harness> =>
      folder.open({
        approvals: "suspend",
        answerServer: questions.ask,
        reviewPlan: plans.review,
        canReviewPlan: plans.canReview,
        keepsRights,
        // Decisions come to this process: it has what commands did until then.
        rehearse: true,
        ...(session && { session }),
        ...(ceilings && { ceilings }),
      });
    try {
      const harness = await open(isStored);
      await harness.start().catch(async (error: unknown) => {
        await harness.close();
        throw error;
      });
      const reopen = (): Promise<Harness> => open(true);
      const isListed = session !== undefined && folder.cwd === this.#ownFolder;
      const { cwd, place } = folder;
      const asks = { questions, plans };
      const parts = { id, cwd, session, isListed, harness, ...asks, reopen, ceilings, place };
      return new RpcSession(parts, await loadSessionParts());
    } catch (error) {
      await session?.close();
      throw error;
    }
  }
}

/** What open sessions have in common, loaded with the first one. */
interface SessionClasses {
  SessionRequests: typeof SessionRequests;
  StatusReader: typeof StatusReader;
}

async function loadSessionParts(): Promise<SessionClasses> {
  const [requests, status] = await Promise.all([
    import("./session-requests.ts"),
    import("./session-status.ts"),
  ]);
  return { ...requests, ...status };
}

/** What an open session is made from. */
interface RpcSessionParts {
  id: string;
  cwd: string;
  session: Session | undefined;
  isListed: boolean;
  harness: Harness;
  /** Of MCP servers. */
  questions: ServerQuestions;
  plans: PlanQuestions;
  /** With what the session was given, whatever it was made with. */
  reopen: () => Promise<Harness>;
  ceilings: Ceilings | undefined;
  place: CommandPlace | undefined;
}

class RpcSession implements HostedSession {
  readonly id: string;
  readonly isListed: boolean;
  readonly #parts: RpcSessionParts;
  readonly #session: Session | undefined;
  #harness: Harness;
  /** How the last prompt ended, until clients know. */
  #outcome: Outcome | undefined;
  readonly #requests: SessionRequests;
  readonly #status: StatusReader;
  #changed: (() => void) | undefined;

  constructor(parts: RpcSessionParts, classes: SessionClasses) {
    this.id = parts.id;
    this.isListed = parts.isListed;
    this.#parts = parts;
    this.#session = parts.session;
    this.#harness = parts.harness;
    const { session, place, plans, questions } = parts;
    const harness = (): Harness => this.#harness;
    this.#requests = new classes.SessionRequests({ harness, session, place, questions, plans });
    this.#status = new classes.StatusReader();
  }

  status(): Readonly<Record<string, unknown>> {
    const questions = this.#parts.questions.list();
    const plans = this.#parts.plans.list();
    return {
      ...this.#status.read(this.#harness),
      ...(questions.length > 0 && { questions }),
      ...(plans.length > 0 && { plans }),
    };
  }

  isWaiting(): boolean {
    const { questions, plans } = this.#parts;
    return questions.list().length + plans.list().length > 0;
  }

  onStatusChange(listener: () => void): () => void {
    this.#changed = listener;
    this.#parts.questions.onChange = listener;
    this.#parts.plans.onChange = listener;
    this.#status.watch(this.#harness, listener);
    return () => {
      this.#parts.questions.onChange = undefined;
      this.#parts.plans.onChange = undefined;
      this.#status.stop();
    };
  }

  request(name: string, payload: Payload): Promise<HostAnswer> {
    return withProtocolErrors(() => this.#requests.answer(name, payload));
  }

  get agent(): Agent {
    return this.#harness.agent;
  }

  get files(): FileStore | undefined {
    return this.#harness.session?.files;
  }

  info(): Readonly<Record<string, unknown>> {
    const { mode, spending } = this.#harness;
    const { path } = this.#session ?? {};
    const file = path !== undefined && { file: path };
    const paid = Object.fromEntries(spending.purposes);
    return { cwd: this.#parts.cwd, mode, ...file, spending: paid };
  }

  amend(changes: SessionAmendment): Promise<void> {
    return withProtocolErrors(async () => {
      if (!this.#session) throw new UsageError("This session is not saved: it has no title.");
      await appendAmendment(this.#session, changes);
    });
  }

  runInfo(): Readonly<Record<string, unknown>> {
    const spending = this.#outcome?.spending ?? this.#harness.takeSpending();
    this.#outcome = undefined;
    return { spending };
  }

  async prompt(prompt: SessionPrompt): Promise<void> {
    this.#outcome = undefined;
    this.#outcome = await this.#harness.prompt(prompt);
  }

  async update({ model, thinkingLevel, modes = {}, ...changes }: SessionChanges): Promise<void> {
    const { permission, ...queues } = modes;
    const mode = parseMode(permission);
    assertWithin({ mode }, this.#parts.ceilings);
    const { modes: allowed } = this.#harness;
    if (mode && !allowed.includes(mode)) {
      throw new UsageError(`Mode "${mode}" is not allowed here: there are ${allowed.join(", ")}.`);
    }
    // The model first: it is what may not be there, and then nothing is changed.
    const before = modelValue(this.#harness.model);
    if (model !== undefined) {
      await this.#harness.setModel(model).catch((error: unknown) => {
        throw new ProtocolError("model_not_found", errorMessage(error), { cause: error });
      });
    }
    try {
      applyChanges(this.agent, { ...changes, modes: queues });
    } catch (error) {
      if (model !== undefined) await this.#harness.setModel(before);
      throw error;
    }
    if (thinkingLevel !== undefined) await this.#harness.setThinking(thinkingLevel);
    if (mode) await this.#harness.setMode(mode);
    // All of it is in the file before the client knows that it holds.
    await this.#harness.start();
  }

  decide(decisions: Readonly<Record<string, Decision>>): Promise<void> {
    return this.#harness.decide(decisions);
  }

  saved(): Promise<void> {
    return this.#harness.saved();
  }

  async replaceMessages(messages: readonly AgentMessage[]): Promise<void> {
    if (!this.#session) return this.agent.replaceMessages(messages);
    const { agent } = this;
    const queues = (["steering", "followUp"] as const).map((queue) => ({
      queue,
      messages: agent.queued(queue),
    }));
    const calls = new Set(
      messages.flatMap((message) =>
        message.role === "assistant" ? listCalls(message).map(({ id }) => id) : [],
      ),
    );
    const questions = agent.state.pending.filter(({ toolCall }) => calls.has(toolCall.id));
    // What waits, waits for the messages that take the place of the others.
    return this.#restart(this.#session, [
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

  async reset(): Promise<void> {
    if (!this.#session) return this.agent.reset();
    return this.#restart(this.#session, []);
  }

  /** A background job would end with it. */
  canReopen(): boolean {
    const jobs = this.#harness.toolset.jobs.list();
    return this.#session !== undefined && jobs.every(({ end }) => end !== undefined);
  }

  async close(): Promise<void> {
    try {
      await this.#harness.close();
    } finally {
      await this.#session?.close();
    }
  }

  /** A branch from the root of the file, with what was set, and an agent that writes there. */
  async #restart(session: Session, entries: readonly EntryBody[]): Promise<void> {
    const { settings } = await session.context();
    const mode = this.#harness.mode;
    await this.#harness.close();
    await session.branch(null);
    if (Object.keys(settings).length > 0) await session.append({ type: "settings", settings });
    for (const entry of entries) await session.append(entry);
    this.#harness = await this.#parts.reopen();
    if (this.#changed) this.#status.watch(this.#harness, this.#changed);
    await this.#harness.setMode(mode);
  }
}

async function appendAmendment(session: Session, changes: SessionAmendment): Promise<void> {
  const { archived, title } = changes;
  if (title !== undefined) await session.append({ type: "title", title });
  if (archived !== undefined) await session.append({ type: "archive", archived });
}

function parseMode(name: string | undefined): PermissionMode | undefined {
  if (name === undefined || isMode(name)) return name;
  const names = MODE_NAMES.join(", ");
  throw new UsageError(`There is no mode "${name}". The modes are ${names}.`);
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

/** Refuses what a client asks for above the ceilings. A model is refused when it is found. */
function assertWithin({ mode, tools }: SessionOptions, ceilings: Ceilings | undefined): void {
  if (!ceilings) return;
  if (typeof mode === "string" && isMode(mode)) assertMode(mode, ceilings);
  const most = ceilings.tools;
  if (!most || !Array.isArray(tools)) return;
  const other = tools.map(String).find((name) => !isToolWithin(name, most));
  if (other === undefined) return;
  const names = most.length === 0 ? "none" : most.join(", ");
  throw new UsageError(`The tool "${other}" is not offered by this server. Its tools: ${names}.`);
}

function toValues(options: SessionOptions): Values {
  const values: Record<string, string> = {};
  for (const [key, value] of Object.entries(options)) {
    // A newer client may know more: fields that are not known are ignored, here as elsewhere.
    if (!isOption(key)) continue;
    const isList = Array.isArray(value) && value.every((each) => typeof each === "string");
    if (key === "tools" ? !isList : typeof value !== "string") {
      throw new UsageError(`"${key}" is ${key === "tools" ? "a list of names" : "a string"}.`);
    }
    // An empty list is one of the things that the command line has a word for.
    values[OPTIONS[key]] = isList && value.length === 0 ? "none" : String(value);
  }
  return values;
}

function isOption(key: string): key is keyof typeof OPTIONS {
  return Object.hasOwn(OPTIONS, key);
}

/** What went wrong, with the code that a client can act on. */
async function withProtocolErrors<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const code = chooseErrorCode(error);
    if (!code) throw error;
    throw new ProtocolError(code, errorMessage(error), { cause: error });
  }
}

function chooseErrorCode(error: unknown): ProtocolError["code"] | undefined {
  const exitCode = toExitCode(error);
  if (exitCode === EXIT.auth) return "unauthorized";
  if (exitCode === EXIT.usage && error instanceof Error) {
    return errnoOf(error.cause) === "model_not_found" ? "model_not_found" : "invalid_request";
  }
  if (!(error instanceof SessionError)) return undefined;
  if (error.code === "not_found") return "session_not_found";
  return error.code === "locked" ? "session_busy" : undefined;
}
