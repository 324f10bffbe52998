import { isAbsolute } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  agent,
  type AgentContext,
  type AuthMethod,
  type ClientCapabilities,
  type InitializeRequest,
  type InitializeResponse,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type McpServer,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type SessionInfo,
  type SetSessionConfigOptionResponse,
} from "@agentclientprotocol/sdk";
import { errnoOf, errorMessage } from "@gyre/ai";
import type { Session, SessionStorage, SessionSummary } from "@gyre/sessions";
import { AcpAuthError, AcpInvalidError } from "./error.ts";
import type { AcpHost } from "./host.ts";
import type { AcpEditor, AcpSession } from "./session.ts";
import { CodingAgentError } from "@gyre/coding/internal/core/errors";
import { EXIT, type ExitCode, toExitCode } from "../../core/exit-codes.ts";
import type { Io } from "../../core/io.ts";
import { createReadable, createWritable, redirectConsole } from "../../core/streams.ts";
import { editorServers } from "./mcp-servers.ts";
import type { Values } from "../../core/options.ts";
import { version } from "@gyre/coding/internal/core/version";
import { sessionTitle } from "@gyre/coding/internal/conversation/prompt-text";

/** Sessions in one answer of session/list. */
export const SESSIONS_PER_PAGE = 50;

/** Services that an editor offers a login for. Others have theirs in a terminal. */
const LOGIN_SERVICES: Readonly<Record<string, string>> = {
  anthropic: "Anthropic",
  openai: "OpenAI",
  google: "Google Gemini",
  openrouter: "OpenRouter",
};

/** The way for editors that cannot open a terminal. */
const KEY_METHOD: AuthMethod = {
  id: "key",
  name: "Key of a service",
  description:
    "Run `gyre login SERVICE` in a terminal, or set a variable like ANTHROPIC_API_KEY for this agent in the editor's settings.",
};

const AUTH_HINT = "Run `gyre login SERVICE` in a terminal, then try again.";

export interface AcpOptions {
  io: Pick<Io, "stdin" | "stdout" | "stderr" | "signal">;
  version: string;
  /** Called once, when the first session is asked for: nothing of it may delay `initialize`. */
  load: () => Promise<AcpHost>;
}

/** Says which service's key is to be stored: how an editor starts the program in a terminal. */
export const LOGIN_VARIABLE = "GYRE_ACP_LOGIN";

/** `gyre acp`. */
export async function runAcp(values: Values, io: Io): Promise<ExitCode> {
  const service = io.env[LOGIN_VARIABLE];
  if (service) {
    const { runLogin } = await import("../../commands/login.ts");
    return runLogin([service], {}, io);
  }
  // One that cannot be used ends the program, and not the first session.
  await (await import("../../core/flag-settings.ts")).readMachinePolicy(io);
  const load = async (): Promise<AcpHost> => (await import("./host.ts")).createAcpHost(values, io);
  return serveAcp({ io, version: version(), load });
}

/**
 * Serves an editor on standard input and output until either ends. Everything that runs is
 * then stopped and written down. Nothing but the protocol is written to `io.stdout`.
 */
export async function serveAcp(options: AcpOptions): Promise<ExitCode> {
  const { io } = options;
  const restore = redirectConsole(io.stderr);
  const server = new AcpServer(options);
  try {
    const connection = server.connect();
    const end = (): void => connection.close();
    io.signal.addEventListener("abort", end, { once: true });
    if (io.signal.aborted) end();
    await connection.closed;
    io.signal.removeEventListener("abort", end);
    return io.signal.aborted ? EXIT.interrupted : EXIT.done;
  } finally {
    await server.close();
    restore();
  }
}

class AcpServer {
  readonly #options: AcpOptions;
  readonly #sessions = new Map<string, AcpSession>();
  /** Sessions that are being opened or closed, by id: no other request may do either meanwhile. */
  readonly #changing = new Map<string, Promise<unknown>>();
  #host: Promise<AcpHost> | undefined;
  #capabilities: ClientCapabilities = {};
  #closed = false;

  constructor(options: AcpOptions) {
    this.#options = options;
  }

  connect(): ReturnType<ReturnType<typeof agent>["connect"]> {
    const { io } = this.#options;
    const app = agent({ name: "gyre" })
      .onRequest(methods.agent.initialize, ({ params }) => this.#initialize(params))
      .onRequest(methods.agent.authenticate, ({ params }) =>
        withProtocolErrors(this.#authenticate(params.methodId)),
      )
      .onRequest(methods.agent.session.new, ({ params, client }) =>
        withProtocolErrors(this.#new({ ...params, client })),
      )
      .onRequest(methods.agent.session.load, ({ params, client }) =>
        withProtocolErrors(this.#reopen({ ...params, client }, true)),
      )
      .onRequest(methods.agent.session.resume, ({ params, client }) =>
        withProtocolErrors(this.#reopen({ ...params, client }, false)),
      )
      .onRequest(methods.agent.session.list, ({ params }) => withProtocolErrors(this.#list(params)))
      .onRequest(methods.agent.session.close, ({ params }) =>
        withProtocolErrors(this.#end(params.sessionId)),
      )
      .onRequest(methods.agent.session.delete, ({ params }) =>
        withProtocolErrors(this.#delete(params.sessionId)),
      )
      .onRequest(methods.agent.session.setMode, ({ params }) =>
        withProtocolErrors(this.#session(params.sessionId).setMode(params.modeId)).then(() => ({})),
      )
      .onRequest(methods.agent.session.setConfigOption, ({ params }) =>
        withProtocolErrors(this.#setConfig(params.sessionId, params.configId, params.value)),
      )
      .onRequest(methods.agent.session.prompt, ({ params, signal }) =>
        withProtocolErrors(this.#session(params.sessionId).prompt(params.prompt, signal)),
      )
      .onNotification(methods.agent.session.cancel, ({ params }) =>
        this.#sessions.get(params.sessionId)?.cancel(),
      );
    // The types of Node's streams and of the web's differ in what they leave out.
    const input = Readable.toWeb(createReadable(io.stdin)) as ReadableStream<Uint8Array>;
    return app.connect(ndJsonStream(Writable.toWeb(createWritable(io.stdout)), input));
  }

  /** Ends all sessions. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#changing.values());
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    const ends = await Promise.allSettled(sessions.map((session) => session.close()));
    for (const end of ends) if (end.status === "rejected") this.#warn(errorMessage(end.reason));
  }

  #initialize({ clientCapabilities = {} }: InitializeRequest): InitializeResponse {
    this.#capabilities = clientCapabilities;
    return {
      // There is one version as yet: whatever was asked for, this is what can be had.
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: "gyre", title: "Gyre", version: this.#options.version },
      agentCapabilities: {
        loadSession: true,
        mcpCapabilities: { http: true, sse: false },
        promptCapabilities: { image: true, audio: true, embeddedContext: true },
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
      },
      authMethods: [KEY_METHOD, ...terminalMethods(clientCapabilities)],
    };
  }

  async #authenticate(methodId: string): Promise<Record<string, never>> {
    if (methodId !== KEY_METHOD.id) throw new AcpInvalidError(`There is no way "${methodId}".`);
    const missing = await (await this.#loaded()).missingKey();
    if (missing !== undefined) throw new AcpAuthError(missing);
    return {};
  }

  async #new(place: Place): Promise<{ sessionId: string } & Configuration> {
    const session = await this.#open(place, (store) => store.create({ cwd: place.cwd }));
    this.#introduce(session, place);
    return { sessionId: session.id, ...session.configuration() };
  }

  /** Opens a session of the store, or finds the very one if it is open here. */
  async #reopen(place: Place & { sessionId: string }, replays: boolean): Promise<Configuration> {
    const { sessionId: id } = place;
    const openFile = async (store: SessionStorage): Promise<Session> => {
      await assertExact(store, id);
      return store.open(id);
    };
    const session = await this.#alone(
      id,
      async () => this.#sessions.get(id) ?? this.#open(place, openFile, id),
    );
    if (replays) await session.replay();
    this.#introduce(session, place);
    return session.configuration();
  }

  async #list({ cwd, cursor }: ListSessionsRequest): Promise<ListSessionsResponse> {
    const store = await (await this.#loaded()).store();
    const from = cursor === undefined || cursor === null ? 0 : Number(cursor);
    if (!Number.isSafeInteger(from) || from < 0) {
      throw new AcpInvalidError(`"${cursor}" is no cursor that came from here.`);
    }
    const all = await store.list(typeof cwd === "string" ? { cwd } : {});
    // One in which nothing was said is nothing to go on with.
    const named = all.filter((each) => isAbsolute(each.cwd) && sessionTitle(each) !== undefined);
    const to = from + SESSIONS_PER_PAGE;
    return {
      sessions: named.slice(from, to).map(formatInfo),
      ...(to < named.length && { nextCursor: String(to) }),
    };
  }

  async #end(id: string): Promise<Record<string, never>> {
    const session = this.#session(id);
    this.#sessions.delete(id);
    await this.#alone(id, () => session.close());
    return {};
  }

  async #delete(id: string): Promise<Record<string, never>> {
    const store = await (await this.#loaded()).store();
    await assertExact(store, id);
    if (this.#sessions.has(id)) await this.#end(id);
    await store.remove(id);
    return {};
  }

  async #setConfig(
    id: string,
    configId: string,
    value: string | boolean,
  ): Promise<SetSessionConfigOptionResponse> {
    if (typeof value !== "string")
      throw new AcpInvalidError(`"${configId}" takes one of its values.`);
    return { configOptions: await this.#session(id).setConfig(configId, value) };
  }

  #session(id: string): AcpSession {
    const session = this.#sessions.get(id);
    if (!session) throw RequestError.sessionNotFound(id);
    return session;
  }

  async #open(
    { cwd, mcpServers: servers = [], client }: Place,
    openFile: (store: SessionStorage) => Promise<Session>,
    id?: string,
  ): Promise<AcpSession> {
    if (!isAbsolute(cwd)) throw new AcpInvalidError(`cwd has to be absolute, and is "${cwd}".`);
    const [host, { AcpSession: Opened }] = await Promise.all([
      this.#loaded(),
      import("./session.ts"),
    ]);
    const folder = await host.folder(cwd);
    if (!folder.store && id !== undefined) throw RequestError.sessionNotFound(id);
    const file = folder.store && (await openFile(folder.store));
    for (const { line, message } of file?.problems ?? []) {
      this.#warn(`Session ${file?.path}, line ${line}: ${message}`);
    }
    const editor = this.#editor(client);
    const { servers: mcpServers } = editorServers(servers);
    const session = await Opened.open({ cwd, folder, editor, mcpServers, ...(file && { file }) });
    if (this.#closed) {
      await session.close();
      throw new Error("The connection was closed.");
    }
    this.#sessions.set(session.id, session);
    return session;
  }

  /** Runs `change` after other changes of the same session. */
  async #alone<T>(id: string, change: () => Promise<T>): Promise<T> {
    const before = this.#changing.get(id);
    const mine = (async () => {
      await before?.catch(() => undefined);
      return change();
    })();
    this.#changing.set(id, mine);
    try {
      return await mine;
    } finally {
      if (this.#changing.get(id) === mine) this.#changing.delete(id);
    }
  }

  /** Sends what an editor may get only after the answer. */
  #introduce(session: AcpSession, { mcpServers = [] }: Place): void {
    const unused = editorServers(mcpServers).unusable.join(", ");
    const notice =
      unused === ""
        ? undefined
        : `MCP servers are reached by stdio or streamable HTTP; not used: ${unused}.`;
    if (notice !== undefined) this.#warn(notice);
    setImmediate(() => {
      if (notice !== undefined) void session.notice("warning", notice);
      void session.introduce();
    });
  }

  #editor(client: AgentContext): AcpEditor {
    const { elicitation, session } = this.#capabilities;
    return {
      update: async (sessionId, update) => {
        // An editor that is gone gets nothing: the session has what was done all the same.
        if (this.#closed) return;
        await client.notify(methods.client.session.update, { sessionId, update }).catch((error) => {
          if (!this.#closed) this.#warn(errorMessage(error));
        });
      },
      askPermission: (request, cancellationSignal) =>
        client.request(methods.client.session.requestPermission, request, {
          ...(cancellationSignal && { cancellationSignal, stopWaitingOnCancel: true }),
        }),
      elicit: (request, cancellationSignal) =>
        client.request(methods.client.elicitation.create, request, {
          ...{ cancellationSignal, stopWaitingOnCancel: true },
        }),
      canElicit: ({ kind }) => Boolean(kind === "form" ? elicitation?.form : elicitation?.url),
      shows: {
        notices: Boolean(session?.notices),
        compactions: Boolean(session?.compaction),
      },
    };
  }

  #loaded(): Promise<AcpHost> {
    return (this.#host ??= this.#options.load());
  }

  #warn(text: string): void {
    this.#options.io.stderr.write(`gyre: ${text}\n`);
  }
}

/** What every request for a session says, and the editor that sends it. */
interface Place {
  cwd: string;
  mcpServers?: readonly McpServer[];
  client: AgentContext;
}

type Configuration = ReturnType<AcpSession["configuration"]>;

/** Throws where no session has this very id, but one that begins with it. */
async function assertExact(store: SessionStorage, id: string): Promise<void> {
  if ((await store.find(id)).id !== id) throw RequestError.sessionNotFound(id);
}

/** What went wrong, in the protocol's own codes. */
async function withProtocolErrors<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw requestError(error);
  }
}

function requestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  const message = errorMessage(error);
  const exitCode = toExitCode(error);
  if (error instanceof AcpAuthError || exitCode === EXIT.auth) {
    return RequestError.authRequired({ hint: AUTH_HINT }, message);
  }
  const code = error instanceof CodingAgentError ? undefined : errnoOf(error);
  if (code === "not_found") return new RequestError(NOT_FOUND, message);
  if (error instanceof AcpInvalidError || exitCode === EXIT.usage) {
    return RequestError.invalidParams(undefined, message);
  }
  return RequestError.internalError(code === undefined ? undefined : { code }, message);
}

/** The protocol's code for what is not there. */
const NOT_FOUND = -32_002;

function formatInfo(summary: SessionSummary): SessionInfo {
  const title = sessionTitle(summary);
  return {
    sessionId: summary.id,
    cwd: summary.cwd,
    updatedAt: new Date(summary.updatedAt).toISOString(),
    ...(title !== undefined && { title }),
  };
}

/** Only where the editor can run this program in a terminal, as it runs it here. */
function terminalMethods({ auth }: ClientCapabilities): AuthMethod[] {
  if (!auth?.terminal) return [];
  return Object.entries(LOGIN_SERVICES).map(([id, name]) => ({
    type: "terminal",
    id: `login-${id}`,
    name: `Log in: ${name}`,
    description: `Asks for a key of ${name} and stores it.`,
    env: { [LOGIN_VARIABLE]: id },
  }));
}
