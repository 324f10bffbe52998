import type {
  CallToolResult,
  CompleteRequestParams,
  ElicitResult,
  GetPromptResult,
  ProgressCallback,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplateType,
  Tool,
} from "@modelcontextprotocol/client";
import { type Clock, errorMessage, redact } from "@gyre/ai";
import { sanitize } from "@gyre/ai/text";
import { type LoginStore, memoryLogins } from "../auth/login-store.ts";
import type { McpLogin } from "../auth/login.ts";
import { McpLoginError, OAuthSession } from "../auth/oauth-session.ts";
import {
  expandConfig,
  isAddress,
  type McpServerConfig,
  type McpServerEntry,
} from "../config/config.ts";
import { McpError } from "../contract/error.ts";
import type { McpFetch } from "../contract/fetch.ts";
import type { Fields } from "../contract/fields.ts";
import type { McpProgress } from "../contract/progress.ts";
import { type AskQuestion, checkAnswer, toQuestion } from "../contract/question.ts";
import type { McpList } from "../contract/list.ts";
import { closeLive, CONNECT_TIMEOUT_MS, type Live, openLive } from "./live.ts";
import { connectProblem, findMcpError, MAX_ERROR_CHARS, STATUS, readStatus } from "./problem.ts";
import { QuietTimers } from "./quiet-timers.ts";

/** A call without a sign of progress, unless the configuration says otherwise. */
export const CALL_TIMEOUT_MS = 60_000;
/** A call with any number of them. */
export const MAX_CALL_MS = 1_800_000;
/** A server that keeps ending is started again this often within `RESTART_WINDOW_MS`. */
export const MAX_RESTARTS = 3;
export const RESTART_WINDOW_MS = 60_000;
/** Before the first restart; doubles with each. */
const RESTART_DELAY_MS = 250;
/** Tools, resources or prompts of one server; further ones are left out. */
export const MAX_LISTED = 1_000;
const MAX_LAST_WORDS = 500;

/** A tool as its server describes it. Nothing in it is to be trusted. */
export interface ListedTool {
  name: string;
  description?: string;
  inputSchema: Readonly<Record<string, unknown>>;
}

/** `idle`: not asked for yet. `down`: it ended or could not be reached; the next use tries again. */
export type McpState = "idle" | "connecting" | "ready" | "down" | "closed";

export interface ConnectionOptions {
  /** The folder to work in, absolute. */
  cwd: string;
  /** Where the values of variables come from, and what programs are given a clean part of. */
  env: Readonly<Record<string, string | undefined>>;
  version: string;
  notesFolder?: string;
  fetch?: McpFetch;
  clock: Clock;
  /** Gets what a server writes to its standard error. */
  log: (server: string, text: string) => void;
  /** Where logins are kept. Default: in memory. */
  logins?: LoginStore;
  /** Opens the way to a person who can log in. Default: only what is stored is used. */
  openLogin?: (options: { port?: number }) => Promise<McpLogin>;
  /** Has a person answer questions of servers. Default: servers are not offered to ask any. */
  ask?: AskQuestion;
  /** Called when a server says that one of its lists is another one by now. */
  onListChanged?: (list: McpList) => void;
}

export interface CallOptions {
  signal?: AbortSignal;
  onProgress?: (progress: McpProgress) => void;
}

/** What a server says of itself. */
export interface McpServerInfo {
  name: string;
  version: string;
  /** The revision of the protocol that both use. */
  protocolVersion: string;
  instructions?: string;
  /** What it has. */
  lists: readonly McpList[];
}

/**
 * A server, connected to when it is first used, and again when it has ended, within a
 * budget. Calls that run when it ends get an error, and are not made again.
 */
export class McpConnection {
  readonly entry: McpServerEntry;
  readonly #options: ConnectionOptions;
  readonly #timers: QuietTimers;
  #live: Promise<Live> | undefined;
  /** On its way to be `#live`. */
  #opening: Live | undefined;
  #session: OAuthSession | undefined;
  #state: McpState = "idle";
  #problem: string | undefined;
  #needsLogin = false;
  #lastWords = "";
  /** When it was started again. */
  #restarts: number[] = [];
  #wasTried = false;
  /** What was made of a list of tools. */
  #listed: { of: readonly Tool[]; tools: readonly ListedTool[] } | undefined;

  constructor(entry: McpServerEntry, options: ConnectionOptions) {
    this.entry = entry;
    this.#options = options;
    this.#timers = new QuietTimers(options.clock);
  }

  get state(): McpState {
    return this.#state;
  }

  /** Why it is down. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Whether it is down because a person has to log in. */
  get needsLogin(): boolean {
    return this.#needsLogin;
  }

  /** What it wrote last to its standard error, on one line: for people, not for a model. */
  get lastWords(): string {
    return sanitize(redact(this.#lastWords).trim(), { keepNewlines: false });
  }

  async info(): Promise<McpServerInfo> {
    const { client } = await this.#connected();
    const { name = "", version = "" } = client.getServerVersion() ?? {};
    const instructions = client.getInstructions();
    const has = client.getServerCapabilities() ?? {};
    const lists: readonly McpList[] = ["tools", "resources", "prompts"];
    return {
      name,
      version,
      protocolVersion: client.getNegotiatedProtocolVersion() ?? "",
      ...(instructions !== undefined && { instructions }),
      lists: lists.filter((list) => has[list] !== undefined),
    };
  }

  /** All of its tools, as it lists them now; the same array as long as it says the same. */
  async tools(): Promise<readonly ListedTool[]> {
    const of = await this.#request((live) => listTools(live));
    if (this.#listed?.of !== of) this.#listed = { of, tools: of.map(listed) };
    return this.#listed.tools;
  }

  /** Calls a tool. Rejects with `McpError`, or with the reason of `signal`. */
  async call(
    tool: string,
    args: Record<string, unknown>,
    options: CallOptions = {},
  ): Promise<CallToolResult> {
    return this.#request(async (live) => {
      const definition = (await listTools(live)).find(({ name }) => name === tool);
      return this.#timed(options, (request) =>
        live.client.callTool(
          { name: tool, arguments: args },
          { ...request, ...(definition && { toolDefinition: definition }) },
        ),
      );
    }, options);
  }

  /** What it lists of its resources. */
  async resources(): Promise<readonly Resource[]> {
    const all = await this.#request(({ client }) =>
      client.getServerCapabilities()?.resources
        ? client.listResources(undefined, LIST_OPTIONS)
        : { resources: [] },
    );
    return all.resources.slice(0, MAX_LISTED);
  }

  /** Addresses of resources with gaps to fill in. */
  async resourceTemplates(): Promise<readonly ResourceTemplateType[]> {
    const all = await this.#request(async ({ client }) => {
      if (!client.getServerCapabilities()?.resources) return { resourceTemplates: [] };
      const sdk = await import("@modelcontextprotocol/client");
      return client.listResourceTemplates(undefined, LIST_OPTIONS).catch((error: unknown) => {
        // Many a server has resources, and does not know this request.
        if (error instanceof sdk.ProtocolError) return { resourceTemplates: [] };
        throw error;
      });
    });
    return all.resourceTemplates.slice(0, MAX_LISTED);
  }

  async read(uri: string, options: CallOptions = {}): Promise<ReadResourceResult> {
    return this.#request(
      ({ client }) =>
        this.#timed(options, (request) =>
          client.readResource({ uri }, { ...request, cacheMode: "refresh" }),
        ),
      options,
    );
  }

  async prompts(): Promise<readonly Prompt[]> {
    const all = await this.#request(({ client }) =>
      client.getServerCapabilities()?.prompts
        ? client.listPrompts(undefined, LIST_OPTIONS)
        : { prompts: [] },
    );
    return all.prompts.slice(0, MAX_LISTED);
  }

  async prompt(
    name: string,
    args: Record<string, string> = {},
    options: CallOptions = {},
  ): Promise<GetPromptResult> {
    return this.#request(
      ({ client }) =>
        this.#timed(options, (request) => client.getPrompt({ name, arguments: args }, request)),
      options,
    );
  }

  /** What may be filled in for an argument of a prompt, or a gap of a resource template. */
  async complete(params: CompleteRequestParams): Promise<readonly string[]> {
    return this.#request(async ({ client }) => {
      if (!client.getServerCapabilities()?.completions) return [];
      return (await client.complete(params, { timeout: CONNECT_TIMEOUT_MS })).completion.values;
    });
  }

  /** Has a person log in, whatever is stored. Rejects with `McpError`. */
  async logIn(signal?: AbortSignal): Promise<void> {
    const session = this.#openSession(this.#expanded());
    if (!session) {
      throw new McpError(
        `There is no login for the MCP server "${this.entry.name}": it is a program, has a key in its headers, or "oauth": false.`,
      );
    }
    await session.logIn(signal);
    // What failed for want of it does not count against the next attempt.
    this.#wasTried = false;
  }

  /** Forgets the login. */
  logOut(): void {
    this.#openSession(this.#expanded())?.logOut();
  }

  /** Ends it; what runs is rejected. */
  async close(): Promise<void> {
    this.#state = "closed";
    // One that does not answer would keep us waiting for as long as it may take to connect.
    if (this.#opening) await closeLive(this.#opening);
    const live = await this.#live?.catch(() => undefined);
    this.#live = undefined;
    if (live) await closeLive(live);
  }

  #callTimeout(): number {
    return this.entry.config.timeout ?? CALL_TIMEOUT_MS;
  }

  /** A request that ends when the server is quiet for too long. */
  async #timed<T>(
    { signal, onProgress }: CallOptions,
    send: (options: RequestSettings) => Promise<T>,
  ): Promise<T> {
    const quiet = new AbortController();
    const timeout = this.#callTimeout();
    const timer = this.#timers.start(timeout, () => quiet.abort(new QuietError(timeout)));
    try {
      return await send({
        signal: signal ? AbortSignal.any([signal, quiet.signal]) : quiet.signal,
        timeout: Math.max(timeout, MAX_CALL_MS),
        maxTotalTimeout: Math.max(timeout, MAX_CALL_MS),
        onprogress: ({ progress, total, message }) => {
          timer.restart();
          // The library's own, while a person is asked.
          if (message?.startsWith(LIBRARY_PROGRESS)) return;
          onProgress?.({
            progress,
            ...(total !== undefined && { total }),
            ...(message !== undefined && { message }),
          });
        },
      });
    } catch (error) {
      if (quiet.signal.aborted) throw quiet.signal.reason;
      throw error;
    } finally {
      timer.stop();
    }
  }

  /** Asks the server, connected to if need be. Rejects with `McpError`, or with the reason of the signal. */
  async #request<T>(
    send: (live: Live) => T | Promise<T>,
    { signal }: CallOptions = {},
  ): Promise<T> {
    const live = await this.#connected();
    try {
      return await send(live);
    } catch (error) {
      signal?.throwIfAborted();
      // The service has forgotten the session, and has not looked at the request.
      const isForgotten = (await readStatus(error)) === STATUS.notFound;
      const mayRepeat = isForgotten || (await this.#hasOpenedPages(error, signal));
      if (!mayRepeat) throw await this.#explained(error, live);
      if (isForgotten) await this.#drop(live, "has ended the session");
      const again = await this.#connected();
      try {
        return await send(again);
      } catch (second) {
        signal?.throwIfAborted();
        throw await this.#explained(second, again);
      }
    }
  }

  /** Whether a call was refused until a person has been to some pages, and the person was there. */
  async #hasOpenedPages(error: unknown, signal = new AbortController().signal): Promise<boolean> {
    const sdk = await import("@modelcontextprotocol/client");
    if (!(error instanceof sdk.UrlElicitationRequiredError) || !this.#options.ask) return false;
    for (const page of error.elicitations) {
      const { action } = await this.#answer({ ...page, mode: "url" }, signal);
      if (action !== "accept") return false;
    }
    return error.elicitations.length > 0;
  }

  /** It may have been closed while it was on its way. */
  #refuseClosed(): void {
    if (this.#state === "closed")
      throw new McpError(`The MCP server "${this.entry.name}" is closed.`);
  }

  async #connected(): Promise<Live> {
    this.#refuseClosed();
    this.#live ??= this.#connect().catch((error: unknown) => {
      this.#live = undefined;
      if (this.#state !== "closed") this.#state = "down";
      this.#problem = errorMessage(error);
      this.#needsLogin = error instanceof McpLoginError;
      throw error;
    });
    return this.#live;
  }

  async #connect(): Promise<Live> {
    const { name } = this.entry;
    await this.#restartInBudget();
    this.#refuseClosed();
    this.#state = "connecting";
    this.#lastWords = "";
    let live: Live | undefined;
    try {
      live = await this.#open();
      await listTools(live);
      this.#refuseClosed();
      if (live.program?.ended !== undefined) throw new Error(`It ${live.program.ended}.`);
    } catch (error) {
      const why = live?.program?.ended;
      if (live) await closeLive(live);
      const own = findMcpError(error);
      if (own) throw own;
      const problem = why === undefined ? await connectProblem(error) : `it ${why}`;
      throw new McpError(`The MCP server "${name}" cannot be used: ${problem}.`, {
        cause: error,
      });
    } finally {
      this.#opening = undefined;
    }
    this.#state = "ready";
    this.#problem = undefined;
    this.#needsLogin = false;
    return live;
  }

  /** Waits as long as a restart has to; throws where there were too many. */
  async #restartInBudget(): Promise<void> {
    if (!this.#wasTried) {
      this.#wasTried = true;
      return;
    }
    const { clock } = this.#options;
    const since = clock.now() - RESTART_WINDOW_MS;
    this.#restarts = this.#restarts.filter((at) => at > since);
    const [oldest] = this.#restarts;
    if (oldest !== undefined && this.#restarts.length >= MAX_RESTARTS) {
      const seconds = Math.ceil((oldest - since) / 1000);
      throw new McpError(
        `The MCP server "${this.entry.name}" has failed too often, and is not tried again for ${seconds} s. ${this.#problem ?? ""}`.trim(),
      );
    }
    this.#restarts.push(clock.now());
    const delay = RESTART_DELAY_MS * 2 ** (this.#restarts.length - 1);
    await new Promise<void>((settle) => {
      clock.after(delay, settle);
    });
  }

  #expanded(): McpServerConfig {
    const { config, isLiteral } = this.entry;
    return isLiteral ? config : expandConfig(config, this.#options.env);
  }

  async #open(): Promise<Live> {
    this.entry.check?.();
    const config = this.#expanded();
    const { cwd, env, version, clock, notesFolder, fetch, ask, onListChanged } = this.#options;
    const session = this.#openSession(config);
    return openLive({
      config,
      cwd,
      env,
      version,
      clock,
      ...(notesFolder !== undefined && { notesFolder }),
      ...(fetch && { fetch }),
      ...(session && { session }),
      ...(ask && { answer: (params, signal) => this.#answer(params, signal) }),
      onStderr: (text) => this.#hear(text),
      onOpening: (live) => {
        this.#refuseClosed();
        this.#opening = live;
      },
      onClose: (live) => this.#lost(live),
      onListChanged: (list, live) => {
        if (list === "tools") delete live.tools;
        onListChanged?.(list);
      },
    });
  }

  /** Undefined where no person can log in to it. */
  #openSession(config: McpServerConfig): OAuthSession | undefined {
    if (!isAddress(config) || config.oauth === false) return undefined;
    const hasKey = Object.keys(config.headers ?? {}).some((name) => /^authorization$/i.test(name));
    if (hasKey) return undefined;
    const { clock, fetch: given, logins, openLogin } = this.#options;
    const { name, scope } = this.entry;
    this.#session ??= new OAuthSession({
      key: { name, scope, url: config.url },
      oauth: config.oauth ?? {},
      store: logins ?? memoryLogins(),
      fetch: given ?? fetch,
      clock,
      ...(openLogin && { openLogin }),
    });
    return this.#session;
  }

  async #answer(params: Fields, signal: AbortSignal): Promise<ElicitResult> {
    const question = toQuestion(this.entry.name, params);
    const { ask } = this.#options;
    if (!question || !ask) return { action: "decline" };
    const answer = await this.#timers.pausedFor(() => ask(question, signal));
    const checked = checkAnswer(question, answer);
    if (checked.action !== "accept" || !checked.content) return { action: checked.action };
    return { action: "accept", content: { ...checked.content } };
  }

  #hear(text: string): void {
    this.#lastWords = (this.#lastWords + text).slice(-MAX_LAST_WORDS);
    this.#options.log(this.entry.name, text);
  }

  /** A connection that was open is no more. */
  #lost(live: Live): void {
    void this.#live?.then(
      (current) => {
        if (current !== live || this.#state === "closed") return;
        this.#live = undefined;
        this.#state = "down";
        this.#problem = `It ${live.program?.ended ?? "has closed the connection"}.`;
      },
      () => undefined,
    );
  }

  async #drop(live: Live, why: string): Promise<void> {
    const current = await this.#live?.catch(() => undefined);
    if (current === live) {
      this.#live = undefined;
      if (this.#state !== "closed") this.#state = "down";
      this.#problem = `It ${why}.`;
    }
    await closeLive(live);
  }

  async #explained(error: unknown, live: Live): Promise<McpError> {
    const sdk = await import("@modelcontextprotocol/client");
    const who = `The MCP server "${this.entry.name}"`;
    const own = findMcpError(error);
    if (own) return own;
    if (error instanceof sdk.ProtocolError) {
      const words = error.message.slice(0, MAX_ERROR_CHARS);
      return new McpError(`${who} answered with an error.`, { cause: error, words });
    }
    const ended = live.program?.ended;
    if (ended !== undefined) {
      return new McpError(
        `${who} ${ended} before it answered; the call may have had effects. The next use starts it again.`,
        { cause: error },
      );
    }
    const isLate = error instanceof sdk.SdkError && error.code === sdk.SdkErrorCode.RequestTimeout;
    if (isLate || error instanceof QuietError) {
      const ms = error instanceof QuietError ? error.ms : CONNECT_TIMEOUT_MS;
      return new McpError(
        `${who} did not answer within ${ms} ms, and was asked to stop; the call may have had effects.`,
        { cause: error },
      );
    }
    const problem = await connectProblem(error);
    // Whatever is wrong with the way to it: the next use connects again.
    await this.#drop(live, `did not answer: ${problem}`);
    return new McpError(`${who} did not answer: ${problem}. The call may have had effects.`, {
      cause: error,
    });
  }
}

/** A server gave no sign of life. */
class QuietError extends Error {
  readonly ms: number;
  constructor(ms: number) {
    super(`no sign of progress within ${ms} ms`);
    this.ms = ms;
  }
}

const LIBRARY_PROGRESS = "Fulfilling input required";

const LIST_OPTIONS = { timeout: CONNECT_TIMEOUT_MS, cacheMode: "refresh" } as const;

/** What is said of a request to the library. */
interface RequestSettings {
  signal: AbortSignal;
  timeout: number;
  maxTotalTimeout: number;
  onprogress: ProgressCallback;
}

function listTools(live: Live): Promise<readonly Tool[]> {
  const list = async (): Promise<readonly Tool[]> => {
    // A server may have no tools, and say so.
    if (!live.client.getServerCapabilities()?.tools) return [];
    const { tools } = await live.client.listTools(undefined, LIST_OPTIONS);
    const byName = new Map(tools.map((tool) => [tool.name, tool]));
    return [...byName.values()].slice(0, MAX_LISTED);
  };
  live.tools ??= list().catch((error: unknown) => {
    delete live.tools;
    throw error;
  });
  return live.tools;
}

function listed({ name, description, inputSchema }: Tool): ListedTool {
  return { name, ...(description !== undefined && { description }), inputSchema };
}
