import { homedir } from "node:os";
import { isAbsolute, parse, resolve } from "node:path";
import type {
  CallToolResult,
  Client,
  JSONRPCMessage,
  Tool,
  Transport,
} from "@modelcontextprotocol/client";
import { type Clock, errorMessage, redact } from "@gyre/ai";
import { cleanEnvironment } from "../process/environment.ts";
import { leadsInto } from "../sandbox/search-path.ts";
import { sanitize } from "../text/sanitize.ts";
import {
  expandConfig,
  isAddress,
  type McpAddress,
  type McpProgram,
  type McpServerEntry,
} from "./config.ts";
import type { McpFetch } from "./http-transport.ts";
import type { StdioTransport } from "../process/stdio-transport.ts";

/** From the start of a server to the list of its tools: some are downloaded first. */
export const CONNECT_TIMEOUT_MS = 60_000;
/** A call without a sign of progress, unless the configuration says otherwise. */
export const CALL_TIMEOUT_MS = 60_000;
/** A call with any number of them. */
export const MAX_CALL_MS = 1_800_000;
/** A server that keeps ending is started again this often within `RESTART_WINDOW_MS`. */
export const MAX_RESTARTS = 3;
export const RESTART_WINDOW_MS = 60_000;
/** Before the first restart; doubles with each. */
const RESTART_DELAY_MS = 250;
/** Tools of one server; further ones are left out. */
export const MAX_TOOLS = 1_000;
/** A service that does not answer to a goodbye is left. */
const GOODBYE_MS = 1_000;
const MAX_LAST_WORDS = 500;
/** Messages of a server that wait to be dealt with; of more, what needs no answer is dropped. */
const MAX_WAITING = 1_000;
const MAX_ERROR_CHARS = 1_000;
const STATUS = { badRequest: 400, unauthorized: 401, forbidden: 403, notFound: 404 } as const;

/** A tool as its server describes it. Nothing in it is to be trusted. */
export interface ListedTool {
  name: string;
  description?: string;
  inputSchema: Readonly<Record<string, unknown>>;
}

/** `idle`: not asked for yet. `down`: it ended or could not be reached; the next use tries again. */
export type McpState = "idle" | "connecting" | "ready" | "down" | "closed";

/** A call or a connection failed. `words`: what the server itself said, not to be trusted. */
export class McpError extends Error {
  readonly code = "mcp";
  readonly words: string | undefined;
  constructor(message: string, options: ErrorOptions & { words?: string } = {}) {
    super(message, options);
    this.name = "McpError";
    this.words = options.words;
  }
}

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
}

export interface CallOptions {
  signal: AbortSignal;
  onProgress: (progress: { progress: number; total?: number; message?: string }) => void;
}

type Program = StdioTransport<JSONRPCMessage>;

/** A connection that is open. */
interface Live {
  client: Client;
  transport: Transport & { terminateSession?(): Promise<void> };
  /** Of a program. */
  program?: Program;
  tools: readonly Tool[];
  /** What was made of these. */
  listed?: { of: readonly Tool[]; tools: readonly ListedTool[] };
  /** The server said that its list is another one by now. */
  isStale: boolean;
}

/**
 * A server, connected to when it is first used, and again when it has ended, within a
 * budget. Calls that run when it ends get an error, and are not made again.
 */
export class McpConnection {
  readonly entry: McpServerEntry;
  readonly #options: ConnectionOptions;
  #live: Promise<Live> | undefined;
  /** On its way to be `#live`. */
  #opening: Live | undefined;
  #state: McpState = "idle";
  #problem: string | undefined;
  #lastWords = "";
  /** When it was started again. */
  #restarts: number[] = [];
  #wasTried = false;

  constructor(entry: McpServerEntry, options: ConnectionOptions) {
    this.entry = entry;
    this.#options = options;
  }

  get state(): McpState {
    return this.#state;
  }

  /** Why it is down. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** What it wrote last to its standard error, on one line: for people, not for a model. */
  get lastWords(): string {
    return sanitize(redact(this.#lastWords).trim(), { keepNewlines: false });
  }

  /** All of its tools, as it lists them now; the same array as long as it says the same. */
  async tools(): Promise<readonly ListedTool[]> {
    const live = await this.#connected();
    if (live.isStale) {
      live.isStale = false;
      try {
        live.tools = await listTools(live.client);
      } catch (error) {
        live.isStale = true;
        throw await this.#explained(error, live, CONNECT_TIMEOUT_MS);
      }
    }
    if (live.listed?.of !== live.tools)
      live.listed = { of: live.tools, tools: live.tools.map(listed) };
    return live.listed.tools;
  }

  /** Calls a tool. Rejects with `McpError`, or with the reason of `signal`. */
  async call(
    tool: string,
    args: Record<string, unknown>,
    options: CallOptions,
  ): Promise<CallToolResult> {
    const live = await this.#connected();
    try {
      return await this.#callOn(live, tool, args, options);
    } catch (error) {
      options.signal.throwIfAborted();
      // The service has forgotten the session, and has not looked at the call.
      if (!(await isStatus(error, STATUS.notFound))) {
        throw await this.#explained(error, live, this.#callTimeout());
      }
      await this.#drop(live, "has ended the session");
      const again = await this.#connected();
      return await this.#callOn(again, tool, args, options).catch(async (second: unknown) => {
        options.signal.throwIfAborted();
        throw await this.#explained(second, again, this.#callTimeout());
      });
    }
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

  async #callOn(
    live: Live,
    name: string,
    args: Record<string, unknown>,
    { signal, onProgress }: CallOptions,
  ): Promise<CallToolResult> {
    const toolDefinition = live.tools.find((tool) => tool.name === name);
    const timeout = this.#callTimeout();
    return live.client.callTool(
      { name, arguments: args },
      {
        signal,
        timeout,
        resetTimeoutOnProgress: true,
        maxTotalTimeout: Math.max(timeout, MAX_CALL_MS),
        onprogress: ({ progress, total, message }) =>
          onProgress({
            progress,
            ...(total !== undefined && { total }),
            ...(message !== undefined && { message }),
          }),
        ...(toolDefinition && { toolDefinition }),
      },
    );
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
      live.tools = await listTools(live.client);
      this.#refuseClosed();
      if (live.program?.ended !== undefined) throw new Error(`It ${live.program.ended}.`);
    } catch (error) {
      const why = live?.program?.ended;
      if (live) await closeLive(live);
      if (error instanceof McpError) throw error;
      const problem = why === undefined ? await connectProblem(error) : `it ${why}`;
      throw new McpError(`The MCP server "${name}" cannot be used: ${problem}.`, {
        cause: error,
      });
    } finally {
      this.#opening = undefined;
    }
    this.#state = "ready";
    this.#problem = undefined;
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

  async #open(): Promise<Live> {
    const sdk = await import("@modelcontextprotocol/client");
    this.entry.check?.();
    const { config: given, isLiteral } = this.entry;
    const config = isLiteral ? given : expandConfig(given, this.#options.env);
    const attempt = async (mode: "legacy" | "auto"): Promise<Live> => {
      const client = new sdk.Client(
        { name: "gyre", version: this.#options.version },
        {
          // What a tool gives back is shown, not relied on: its schema need not be compiled.
          jsonSchemaValidator: {
            getValidator: () => (input: unknown) => ({
              valid: true,
              data: input as never,
              errorMessage: undefined,
            }),
          },
          versionNegotiation: { mode },
          listChanged: {
            tools: {
              autoRefresh: false,
              debounceMs: 0,
              onChanged: () => {
                live.isStale = true;
              },
            },
          },
        },
      );
      const made = isAddress(config) ? await this.#service(config) : await this.#program(config);
      const live: Live = { client, ...made, tools: [], isStale: false };
      this.#refuseClosed();
      this.#opening = live;
      // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
      client.onclose = () => this.#lost(live);
      try {
        await client.connect(made.transport, { timeout: CONNECT_TIMEOUT_MS });
        oneByOne(made.transport);
        return live;
      } catch (error) {
        // A write to one that has ended may fail with the pipe before its end is reported.
        const isOver = live.program?.ended !== undefined || isBrokenPipe(error);
        await closeLive(live);
        const ended = isOver ? live.program?.ended : undefined;
        if (ended !== undefined && ended !== "could not be started") {
          throw new Error(`it ${ended}`, { cause: error });
        }
        throw error;
      }
    };
    try {
      return await attempt("legacy");
    } catch (error) {
      // One that has left the old handshake behind says so in one of these ways.
      const isModern =
        error instanceof sdk.ProtocolError || (await isStatus(error, STATUS.badRequest));
      if (!isModern) throw error;
      return attempt("auto");
    }
  }

  async #program(config: McpProgram): Promise<{ transport: Program; program: Program }> {
    const [{ StdioTransport: Stdio }, { parseJSONRPCMessage: parse }] = await Promise.all([
      import("../process/stdio-transport.ts"),
      import("@modelcontextprotocol/client"),
    ]);
    const { cwd, env, notesFolder } = this.#options;
    const program: Program = new Stdio({
      command: config.command,
      args: config.args ?? [],
      cwd: config.cwd === undefined ? neutralFolder(cwd, env) : resolve(cwd, config.cwd),
      env: cleanEnvironment(env, {
        network: true,
        workspace: cwd,
        ...(config.env && { set: config.env }),
      }),
      ...(notesFolder !== undefined && { notesFolder }),
      onStderr: (text) => this.#hear(text),
      parse,
    });
    return { transport: program, program };
  }

  async #service({ url, headers }: McpAddress): Promise<Pick<Live, "transport">> {
    const [{ StreamableHTTPClientTransport: Http }, { limitedFetch }] = await Promise.all([
      import("@modelcontextprotocol/client"),
      import("./http-transport.ts"),
    ]);
    const transport = new Http(new URL(url), {
      fetch: limitedFetch(this.#options.fetch ?? fetch),
      ...(headers && { requestInit: { headers: { ...headers } } }),
    });
    return { transport };
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

  async #explained(error: unknown, live: Live, timeoutMs: number): Promise<McpError> {
    const sdk = await import("@modelcontextprotocol/client");
    const who = `The MCP server "${this.entry.name}"`;
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
    if (error instanceof sdk.SdkError && error.code === sdk.SdkErrorCode.RequestTimeout) {
      return new McpError(
        `${who} did not answer within ${timeoutMs} ms, and was asked to stop; the call may have had effects.`,
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

async function listTools(client: Client): Promise<readonly Tool[]> {
  // A server may have no tools, and say so.
  if (!client.getServerCapabilities()?.tools) return [];
  const { tools } = await client.listTools(undefined, {
    timeout: CONNECT_TIMEOUT_MS,
    cacheMode: "refresh",
  });
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  return [...byName.values()].slice(0, MAX_TOOLS);
}

/**
 * Has a notification dealt with before the next message is looked at. The library answers to
 * it a moment later, and progress that comes in one piece with the result would be lost.
 */
function oneByOne(transport: Transport): void {
  const take = transport.onmessage;
  if (!take) return;
  const waiting: Parameters<typeof take>[] = [];
  let isBusy = false;
  const work = async (): Promise<void> => {
    isBusy = true;
    try {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        take(...next);
        if (!("id" in next[0])) await new Promise(setImmediate);
      }
    } finally {
      isBusy = false;
    }
  };
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
  transport.onmessage = (...message) => {
    // Progress that comes faster than it can be reported would fill our memory.
    if (waiting.length >= MAX_WAITING && !("id" in message[0])) return;
    waiting.push(message);
    if (!isBusy) void work();
  };
}

function listed({ name, description, inputSchema }: Tool): ListedTool {
  return { name, ...(description !== undefined && { description }), inputSchema };
}

/** Says goodbye to a service, so that it can forget the session, and lets go. */
async function closeLive({ client, transport }: Live): Promise<void> {
  const goodbye = transport.terminateSession?.().catch(() => {
    // It forgets by itself.
  });
  if (goodbye) {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((settle) => {
      timer = setTimeout(settle, GOODBYE_MS);
    });
    await Promise.race([goodbye, late]);
    clearTimeout(timer);
  }
  await client.close();
  await transport.close();
}

async function isStatus(error: unknown, status: number): Promise<boolean> {
  const { SdkHttpError: HttpError } = await import("@modelcontextprotocol/client");
  return error instanceof HttpError && error.status === status;
}

/** How the library begins what it says of a version; the server's own words follow. */
const UNKNOWN_VERSION = "Server's protocol version";

/**
 * Where a server starts that names no folder. Not in the workspace: `npx` and `python3 -m` prefer
 * programs of the folder that they start in, and a clone could bring its own.
 */
function neutralFolder(workspace: string, env: ConnectionOptions["env"]): string {
  const home = env["HOME"] ?? homedir();
  return !isAbsolute(home) || leadsInto(home, workspace) ? parse(workspace).root : home;
}

/** What is wrong with the way to a server, as the end of a sentence. */
async function connectProblem(error: unknown): Promise<string> {
  const sdk = await import("@modelcontextprotocol/client");
  // In our words: those of a server may be meant for a model.
  if (error instanceof sdk.ProtocolError) return `it answered with the error ${error.code}`;
  if (error instanceof sdk.SdkHttpError) {
    const { status } = error;
    const wantsKey = status === STATUS.unauthorized || status === STATUS.forbidden;
    return `it answered ${status}${wantsKey ? ': it wants a key, which can be given in "headers"' : ""}`;
  }
  const { RequestTimeout, ConnectionClosed, SendFailed, ListPaginationExceeded } = sdk.SdkErrorCode;
  const plain: readonly string[] = [
    RequestTimeout,
    ConnectionClosed,
    SendFailed,
    ListPaginationExceeded,
  ];
  if (error instanceof sdk.SdkError && !plain.includes(error.code)) {
    return "its answer is not as the protocol has it";
  }
  const message = errorMessage(error);
  if (message.startsWith(UNKNOWN_VERSION))
    return "it speaks a version of the protocol that is not known";
  return plainMessage(error).replace(/\.$/, "");
}

function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}

/** With its cause: only that of a failed `fetch` says what is wrong. */
function plainMessage(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const text =
    error instanceof Error && error.message === "fetch failed" && cause instanceof Error
      ? cause.message || ("code" in cause ? String(cause.code) : error.message)
      : errorMessage(error);
  return sanitize(redact(text), { keepNewlines: false }).slice(0, MAX_ERROR_CHARS);
}
