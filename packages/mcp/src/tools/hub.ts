import type { AgentToolResult, Middleware, ToolInvocation } from "@gyre/agent";
import { defineTool } from "@gyre/agent";
import {
  type Clock,
  errorMessage,
  nearNames,
  systemClock,
  type TextContent,
  type UserContent,
  validateToolArguments,
} from "@gyre/ai";
import { cutText, sanitize } from "@gyre/ai/text";
import { isMcpToolName, MCP_CALL, MCP_PRESENTATIONS, TOOL_SEARCH } from "./catalog.ts";
import { checkEntries, isAddress, isWanted, type McpServerEntry } from "../config/config.ts";
import type { LoginStore } from "../auth/login-store.ts";
import type { McpLogin } from "../auth/login.ts";
import {
  type CallOptions,
  type ListedTool,
  MAX_CALL_MS,
  McpConnection,
  type McpState,
} from "../client/connection.ts";
import { McpError } from "../contract/error.ts";
import type { McpFetch } from "../contract/fetch.ts";
import type { AskQuestion } from "../contract/question.ts";
import { ruleForServer, serverAliases, toolNames } from "./names.ts";
import { failed, type McpTool, textResult } from "./mcp-tool.ts";
import { hashOfTool, memoryPins, type PinStore } from "./pins.ts";
import { type McpPrompt, toMcpPrompt, toUserContent } from "./prompts.ts";
import { RESOURCE_TOOLS, type ResourceTool } from "./resource-tools.ts";
import { fromServer, type ResultOptions, toToolResult } from "./result.ts";
import { withoutPatterns } from "./patterns.ts";
import { ranked } from "./search.ts";

/** A search waits for servers that are still being connected to. */
export const SEARCH_WAIT_MS = 30_000;
/** How long the first request waits for servers whose tools are listed at once. */
export const DIRECT_WAIT_MS = 10_000;
const DEFAULT_FOUND = 5;
const MAX_FOUND = 20;
/** Of the description of a tool that was found. */
const MAX_DESCRIPTION_CHARS = 2_000;
const MAX_SCHEMA_CHARS = 12_000;
/** Of a search that finds nothing: names that are listed instead. */
const MAX_NAMES_LISTED = 60;
const MAX_SERVERS_LISTED = 20;
const MAX_PROGRESS_CHARS = 500;
const MAX_SUMMARY_CHARS = 300;
/** A person may take a day to say whether a changed tool is to be used. */
const SEARCH_TIMEOUT_MS = 86_400_000;
const ABORT_GRACE_MS = 1_000;
/** Before names, in a query. */
const SELECT = "select:";
const ONE_LINE = { keepNewlines: false } as const;

/** Tools that are not what they were when they were accepted. */
export interface McpChanges {
  server: string;
  /** As the server calls them. */
  changed: readonly string[];
  added: readonly string[];
  /** What they say now. */
  tools: readonly ListedTool[];
}

export interface McpOptions {
  servers: readonly McpServerEntry[];
  /** The folder to work in, absolute: where programs are started. */
  cwd: string;
  /** Default: the variables of this process. */
  env?: Readonly<Record<string, string | undefined>>;
  /** What tools said before. Default: nothing is known, and nothing is kept. */
  pins?: PinStore;
  /** Whether changed tools are used from now on. Without it they are left out. */
  acceptChanges?: (changes: McpChanges, signal?: AbortSignal) => Promise<boolean>;
  /** Called once for each thing that a person should know. */
  warn?: (text: string) => void;
  /** Gets what servers write to their standard error. */
  log?: (server: string, text: string) => void;
  /** A folder (0700) for long results and notes on running programs. */
  spoolFolder?: string;
  /** Has a person answer questions of servers. Default: servers are not offered to ask any. */
  ask?: AskQuestion;
  /** Where logins are kept. Default: nothing is kept. */
  logins?: LoginStore;
  /** Opens the way to a person who can log in. Default: only what is stored is used. */
  openLogin?: (options: { port?: number }) => Promise<McpLogin>;
  fetch?: McpFetch;
  /** Sent to servers. */
  version?: string;
  clock?: Clock;
}

/** How it stands with a server, for people. */
export interface McpServerStatus {
  name: string;
  scope: string;
  kind: "stdio" | "http";
  state: McpState | "disabled";
  /** That can be used. */
  tools: readonly string[];
  /** That are left out because they are not what they were. */
  held: readonly string[];
  problem?: string;
  /** A person has to log in first. */
  needsLogin?: boolean;
  /** What it wrote last to its standard error. */
  lastWords?: string;
}

/** Servers of the Model Context Protocol, and how an agent comes to their tools. */
export interface Mcp {
  /**
   * For an agent's tools, after its own: `tool_search` and `mcp_call`, and the tools of servers
   * that are to be listed at once. The same from the first request to the last, whatever
   * servers do. Empty where no server is enabled.
   */
  readonly tools: readonly McpTool[];
  /**
   * Turns a call of `mcp_call` into one of the tool that is meant, arguments checked: all
   * middleware after it, and so permissions, sees that tool. Has to be there, and first.
   */
  readonly middleware: Middleware;
  /** Connects to all servers, and settles when each is ready or has failed. */
  connect(): Promise<void>;
  status(): readonly McpServerStatus[];
  /** Has the tools of a server accepted as they are now; gives what was not as before. Connects to it. */
  accept(server: string): Promise<McpChanges>;
  /** What servers have for their users. Connects to all; of one that fails, nothing is there. */
  prompts(): Promise<readonly McpPrompt[]>;
  /** What the user says by choosing a prompt. Rejects with `McpError`. */
  prompt(
    server: string,
    name: string,
    args: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<UserContent[]>;
  /** Has a person log in to a server at an address, and connects to it. Rejects with `McpError`. */
  logIn(server: string, signal?: AbortSignal): Promise<void>;
  /** Forgets the login to a server. */
  logOut(server: string): void;
  /** Ends all servers. */
  close(): Promise<void>;
}

/**
 * Makes the tools. Nothing is started but servers whose tools are listed at once. Rejects with
 * `McpConfigError` for servers that are not of the form that the types have.
 */
export async function openMcp(options: McpOptions): Promise<Mcp> {
  checkEntries(options?.servers);
  const hub = new McpHub(options);
  await hub.readDirect();
  return hub;
}

/** Tools of a server as they were accepted. */
interface Accepted {
  tools: readonly ServerTool[];
  held: readonly string[];
}

interface ServerTool extends McpTool {
  server: string;
  listed: ListedTool;
}

/** What became of a list of tools. */
interface View {
  of: readonly ListedTool[];
  accepted: Promise<Accepted>;
  /** A person was asked about what is held. */
  isAsked: boolean;
}

class Server {
  readonly alias: string;
  readonly connection: McpConnection;
  view: View | undefined;
  /** What the view came to. */
  accepted: Accepted | undefined;
  /** Why there is no view. */
  problem: string | undefined;
  hasResources = false;

  constructor(alias: string, connection: McpConnection) {
    this.alias = alias;
    this.connection = connection;
  }

  get entry(): McpServerEntry {
    return this.connection.entry;
  }
}

class McpHub implements Mcp {
  readonly #options: McpOptions;
  readonly #servers: readonly Server[];
  readonly #disabled: readonly McpServerEntry[];
  readonly #pins: PinStore;
  readonly #clock: Clock;
  readonly #warned = new Set<string>();
  /** Names of tools whose parameters the model has seen. */
  readonly #shown = new Set<string>();
  /** Questions that a person has not answered yet. */
  readonly #asks = new Set<Promise<Accepted>>();
  readonly #callTool: McpTool;
  #tools: readonly McpTool[] = [];

  constructor(options: McpOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#pins = options.pins ?? memoryPins();
    const enabled = options.servers.filter(({ config }) => config.disabled !== true);
    this.#disabled = options.servers.filter(({ config }) => config.disabled === true);
    // Of all: a rule for one that is disabled must not come to mean another.
    const aliases = serverAliases(options.servers.map(({ name }) => name));
    const aliasOf = new Map(options.servers.map((entry, index) => [entry, aliases[index]]));
    const { ask, fetch, logins, openLogin, spoolFolder } = options;
    this.#servers = enabled.map((entry) => {
      const connection = new McpConnection(entry, {
        cwd: options.cwd,
        env: options.env ?? process.env,
        version: options.version ?? "0",
        log: options.log ?? (() => {}),
        clock: this.#clock,
        ...(spoolFolder !== undefined && { notesFolder: spoolFolder }),
        ...(ask && { ask }),
        ...(fetch && { fetch }),
        ...(logins && { logins }),
        ...(openLogin && { openLogin }),
      });
      return new Server(aliasOf.get(entry) ?? "", connection);
    });
    this.#callTool = callTool();
    if (enabled.length > 0) this.#tools = [this.#searchTool(), this.#callTool];
  }

  get tools(): readonly McpTool[] {
    return this.#tools;
  }

  readonly middleware: Middleware = {
    tool: async (call, next) => {
      if (call.tool !== this.#callTool) return next();
      const meant = await this.#meant(call);
      return "content" in meant ? meant : next(meant);
    },
  };

  /** The tools that are listed at once, of servers that are there in time. */
  async readDirect(): Promise<void> {
    const direct = this.#servers.filter(({ entry }) => entry.config.direct === true);
    if (direct.length === 0) return;
    // No person can be asked before there is a session.
    const read = direct.map((server) => this.#acceptedTools(server, { mayAsk: false }));
    await this.#within(Promise.allSettled(read), DIRECT_WAIT_MS);
    for (const server of direct) {
      if (server.accepted) {
        for (const { name } of server.accepted.tools) this.#shown.add(name);
        this.#tools = [...this.#tools, ...server.accepted.tools];
      } else {
        const { name } = server.entry;
        // One that has failed was reported when it did.
        if (server.connection.state === "down") continue;
        this.#warnOnce(
          `The MCP server "${name}" was not ready in time: its tools are found by ${TOOL_SEARCH}.`,
        );
      }
    }
  }

  async connect(): Promise<void> {
    await Promise.allSettled(
      this.#servers.map((server) => this.#acceptedTools(server, { mayAsk: false })),
    );
  }

  status(): readonly McpServerStatus[] {
    const all = this.#servers.map((server): McpServerStatus => {
      const { connection } = server;
      const accepted = connection.state === "ready" ? server.accepted : undefined;
      const { lastWords } = connection;
      const problem = connection.problem ?? server.problem;
      return {
        ...toStatus(server.entry),
        state: connection.state,
        tools: accepted?.tools.map(({ name }) => name) ?? [],
        held: accepted?.held ?? [],
        ...(problem !== undefined && { problem }),
        ...(connection.needsLogin && { needsLogin: true }),
        ...(problem !== undefined && lastWords !== "" && { lastWords }),
      };
    });
    const disabled = this.#disabled.map((entry): McpServerStatus => ({
      ...toStatus(entry),
      state: "disabled",
      tools: [],
      held: [],
    }));
    return [...all, ...disabled];
  }

  async accept(name: string): Promise<McpChanges> {
    const server = this.#named(name);
    const tools = await server.connection.tools();
    const changes = this.#changes(server, tools);
    this.#pins.accept(server.entry, tools);
    server.view = undefined;
    return changes;
  }

  async prompts(): Promise<readonly McpPrompt[]> {
    const lists = await Promise.allSettled(
      this.#servers.map(async ({ entry, connection }) =>
        (await connection.prompts()).map((prompt) => toMcpPrompt(entry.name, prompt)),
      ),
    );
    return lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []));
  }

  async prompt(
    name: string,
    prompt: string,
    args: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<UserContent[]> {
    const { connection } = this.#named(name);
    return toUserContent(await connection.prompt(prompt, args, signal ? { signal } : {}));
  }

  async logIn(name: string, signal?: AbortSignal): Promise<void> {
    const server = this.#named(name);
    await server.connection.logIn(signal);
    await this.#acceptedTools(server, { mayAsk: false });
  }

  logOut(name: string): void {
    this.#named(name).connection.logOut();
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map(({ connection }) => connection.close()));
  }

  #named(name: string): Server {
    const server = this.#servers.find(({ entry }) => entry.name === name);
    if (server) return server;
    const near = nearNames(
      name,
      this.#servers.map(({ entry }) => entry.name),
    );
    const hint = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
    throw new McpError(`There is no MCP server "${name}" that is enabled.${hint}`);
  }

  /** The call of the tool that `mcp_call` was asked for, or why there is none. */
  async #meant(call: ToolInvocation): Promise<ToolInvocation | AgentToolResult> {
    const { tool: name, arguments: args = {} } = call.args;
    if (typeof name !== "string") return failed("tool has to be the name of a tool.");
    let tool: ServerTool | undefined;
    try {
      tool = await this.#find(name, call.signal);
    } catch (error) {
      return failed(errorMessage(error));
    }
    if (!tool) return failed(this.#noTool(name));
    const checked = await validateToolArguments(tool, args);
    if (checked.ok) return { ...call, tool, args: checked.value };
    const schema = this.#shown.has(name) ? [] : [schemaText(tool.listed)];
    this.#shown.add(name);
    // The error quotes the schema, which is the server's.
    return failed([fromServer(tool.server, [checked.error, ...schema].join("\n"))]);
  }

  /** A tool that may be used, by the name that the model has for it. */
  async #find(name: string, signal: AbortSignal): Promise<ServerTool | undefined> {
    const server = this.#findServer(name);
    if (!server) return undefined;
    const { tools } = await this.#acceptedTools(server, { mayAsk: true, signal });
    return tools.find((tool) => tool.name === name);
  }

  #findServer(name: string): Server | undefined {
    if (!isMcpToolName(name)) return undefined;
    return this.#servers.find(({ alias }) => name.startsWith(ruleForServer(alias).slice(0, -1)));
  }

  #noTool(name: string): string {
    const near = nearNames(
      name,
      this.#ready().map((tool) => tool.name),
    );
    const hint = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
    return `There is no tool "${name}".${hint} Find tools with ${TOOL_SEARCH}.`;
  }

  /** Tools of servers that were connected to. */
  #ready(): ServerTool[] {
    return this.#servers.flatMap(({ accepted }) => accepted?.tools ?? []);
  }

  /** Tools of a server, connected to if need be, without those that are not what they were. */
  async #acceptedTools(
    server: Server,
    { mayAsk, signal }: { mayAsk: boolean; signal?: AbortSignal },
  ): Promise<Accepted> {
    const of = await this.#listTools(server);
    server.problem = undefined;
    try {
      if (server.view?.of !== of) {
        server.view = { of, accepted: this.#look(server, of), isAsked: false };
      }
      const { view } = server;
      server.accepted = await view.accepted;
      const isOpen = server.accepted.held.length > 0 && !view.isAsked;
      if (isOpen && mayAsk && this.#options.acceptChanges) {
        view.isAsked = true;
        const asked = this.#ask(server, view, server.accepted, signal).finally(() =>
          this.#asks.delete(asked),
        );
        this.#asks.add(asked);
        view.accepted = asked;
        server.accepted = await asked;
      }
      return server.accepted;
    } catch (error) {
      server.view = undefined;
      server.accepted = undefined;
      server.problem = errorMessage(error);
      throw error;
    }
  }

  /** What a server wrote to its standard error goes to people: a model might obey it. */
  async #listTools({ connection }: Server): Promise<readonly ListedTool[]> {
    try {
      return await connection.tools();
    } catch (error) {
      const { lastWords } = connection;
      const output = lastWords === "" ? "" : ` It wrote to stderr: ${lastWords}`;
      if (connection.state === "down") this.#warnOnce(`${errorMessage(error)}${output}`);
      throw error;
    }
  }

  async #look(server: Server, of: readonly ListedTool[]): Promise<Accepted> {
    server.hasResources = (await server.connection.info()).lists.includes("resources");
    const { isNew, changed, added } = this.#pins.compare(server.entry, of);
    if (isNew) this.#pins.accept(server.entry, of);
    const filter = server.entry.config.tools;
    const held = [...changed, ...added].filter((name) => isWanted(name, filter));
    if (held.length > 0 && !this.#options.acceptChanges) this.#warnOfHeld(server, held);
    return { tools: this.#made(server, of, new Set(held)), held };
  }

  /** Lets a person say whether held tools are used. */
  async #ask(
    server: Server,
    view: View,
    before: Accepted,
    signal: AbortSignal | undefined,
  ): Promise<Accepted> {
    const changes = this.#changes(server, view.of);
    const isYes = await this.#options.acceptChanges?.(changes, signal);
    if (signal?.aborted) view.isAsked = false;
    else if (isYes) {
      this.#pins.accept(server.entry, changes.tools);
      server.accepted = { tools: this.#made(server, view.of, new Set()), held: [] };
      return server.accepted;
    } else this.#warnOfHeld(server, before.held);
    return before;
  }

  #changes(server: Server, of: readonly ListedTool[]): McpChanges {
    const { changed, added } = this.#pins.compare(server.entry, of);
    const filter = server.entry.config.tools;
    const wanted = (name: string): boolean => isWanted(name, filter);
    const names = new Set([...changed, ...added].filter(wanted));
    return {
      server: server.entry.name,
      changed: changed.filter(wanted),
      added: added.filter(wanted),
      tools: of.filter(({ name }) => names.has(name)),
    };
  }

  #warnOfHeld({ entry: { name } }: Server, held: readonly string[]): void {
    const names = held.map((tool) => sanitize(tool, { keepNewlines: false })).join(", ");
    this.#warnOnce(
      `The MCP server "${name}" has changed what its tools say; these are left out: ${cutText(names, MAX_SUMMARY_CHARS)}. To see and accept them: gyre mcp trust ${name}`,
    );
  }

  #made(server: Server, of: readonly ListedTool[], held: ReadonlySet<string>): ServerTool[] {
    const ours = server.hasResources ? RESOURCE_TOOLS : [];
    const names = toolNames(
      server.alias,
      [...of, ...ours.map(({ listed }) => listed)].map(({ name }) => name),
    );
    const filter = server.entry.config.tools;
    const made = of.flatMap((listed, index) => {
      const isUsed = isWanted(listed.name, filter) && !held.has(listed.name);
      return isUsed ? [this.#createTool(server, listed, names[index] ?? "", callServer)] : [];
    });
    const more = ours.flatMap(({ listed, run }, index) => {
      const name = names[of.length + index] ?? "";
      return isWanted(listed.name, filter) ? [this.#createTool(server, listed, name, run)] : [];
    });
    return [...made, ...more];
  }

  #createTool(
    server: Server,
    listed: ListedTool,
    name: string,
    run: ResourceTool["run"] | typeof callServer,
  ): ServerTool {
    const { name: serverName } = server.entry;
    const { connection } = server;
    const hash = hashOfTool(listed);
    const about = sanitize(cutText(listed.description ?? "", MAX_DESCRIPTION_CHARS));
    const execute: McpTool["execute"] = async (args, { signal, update: onUpdate }) => {
      // A person may have thought about it for an hour: it has to be what it was.
      const now = await this.#find(name, signal);
      if (!now || hashOfTool(now.listed) !== hash) {
        throw new McpError(`The tool is not what it was any more. Find it with ${TOOL_SEARCH}.`);
      }
      const { spoolFolder } = this.#options;
      try {
        return await run(connection, asRecord(args), {
          signal,
          onProgress: (progress) => onUpdate(textResult(progressText(progress))),
          server: serverName,
          tool: listed.name,
          ...(spoolFolder !== undefined && { spoolFolder }),
        });
      } catch (error) {
        if (!(error instanceof McpError) || error.words === undefined) throw error;
        return failed([error.message, fromServer(serverName, error.words)]);
      }
    };
    return {
      name,
      label: `${serverName}: ${listed.name}`,
      description: `${about}\n(From the MCP server ${JSON.stringify(serverName)}.)`.trim(),
      parameters: withoutPatterns(listed.inputSchema),
      timeoutMs: Math.max(MAX_CALL_MS, server.entry.config.timeout ?? 0),
      abortGraceMs: ABORT_GRACE_MS,
      server: serverName,
      listed,
      execute,
      // What a server says of itself (read-only, say) is not relied on.
      access: (args) => ({
        kind: "network",
        targets: [`${serverName}/${listed.name}`],
        summary: cutText(
          `MCP server ${JSON.stringify(serverName)}, tool ${JSON.stringify(listed.name)}: ${JSON.stringify(args)}`,
          MAX_SUMMARY_CHARS,
        ),
      }),
    };
  }

  #searchTool(): McpTool {
    const names = this.#servers.map(({ entry }) => entry.name);
    const shown = names.slice(0, MAX_SERVERS_LISTED).map((name) => sanitize(name, ONE_LINE));
    if (names.length > shown.length) shown.push("...");
    const tool = defineTool({
      name: TOOL_SEARCH,
      presentation: MCP_PRESENTATIONS[TOOL_SEARCH],
      label: "Find tools",
      description: `Find tools of MCP servers (${shown.join(", ")}) and their parameters, for ${MCP_CALL}.`,
      parameters: {
        type: "object",
        properties: {
          query: {
            type: "string",
            description: "What it should do, or select:NAME,NAME",
          },
          limit: { type: "integer", description: `Default ${DEFAULT_FOUND}` },
        },
        required: ["query"],
      } as const,
      timeoutMs: SEARCH_TIMEOUT_MS,
      execute: async ({ query, limit = DEFAULT_FOUND }, { signal }) =>
        this.#search(query, Math.min(Math.max(1, limit), MAX_FOUND), signal),
    });
    const access: McpTool["access"] = (args) => ({
      kind: "none",
      targets: [],
      summary: `Find tools of MCP servers: ${String(args["query"])}`,
    });
    return { ...tool, access };
  }

  async #search(query: string, limit: number, signal: AbortSignal): Promise<AgentToolResult> {
    const looks = this.#servers.map((server) =>
      this.#acceptedTools(server, { mayAsk: true, signal }),
    );
    // What a person is asked is waited for; what is being connected to is not for long.
    await this.#within(Promise.allSettled(looks), SEARCH_WAIT_MS, signal);
    await this.#within(Promise.allSettled(this.#asks), SEARCH_TIMEOUT_MS, signal);
    signal.throwIfAborted();
    const tools = this.#ready();
    const found = query.startsWith(SELECT)
      ? this.#selected(query.slice(SELECT.length), tools)
      : ranked(query, tools.map(toSearched))
          .map(({ tool }) => tool)
          .slice(0, limit);
    const parts = found.length > 0 ? this.#foundText(found) : [nothingText(query, tools)];
    parts.push(...this.#missing());
    return textResult(parts, { tools: found.map(({ name }) => name) });
  }

  #selected(list: string, tools: readonly ServerTool[]): ServerTool[] {
    const names = new Set(list.split(",").map((name) => name.trim()));
    return tools
      .filter(({ name, listed }) => names.has(name) || names.has(listed.name))
      .slice(0, MAX_FOUND);
  }

  #foundText(found: readonly ServerTool[]): (string | TextContent)[] {
    const servers = [...new Set(found.map(({ server }) => server))];
    const texts = servers.map((server) => {
      const tools = found.filter((tool) => tool.server === server);
      return fromServer(server, tools.map(describeTool).join("\n\n"));
    });
    for (const { name } of found) this.#shown.add(name);
    const names = found.map(({ name }) => name).join(", ");
    return [`Call them with ${MCP_CALL}: ${names}`, ...texts];
  }

  /** Servers of which nothing could be found. */
  #missing(): string[] {
    return this.#servers.flatMap(({ entry, connection, accepted, problem }) => {
      const name = JSON.stringify(entry.name);
      if (connection.state === "connecting") return [`The server ${name} is still being started.`];
      const why = connection.problem ?? problem;
      if (!accepted || why !== undefined) return why === undefined ? [] : [why];
      return accepted.held.length === 0
        ? []
        : [
            `Left out until the user has accepted it: ${accepted.held.length} ${accepted.held.length === 1 ? "tool" : "tools"} of ${name}.`,
          ];
    });
  }

  /** Waits for it, but not for longer, and not after an abort. */
  #within(promise: Promise<unknown>, ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((settle) => {
      const done = (): void => {
        stop();
        signal?.removeEventListener("abort", done);
        settle();
      };
      const stop = this.#clock.after(ms, done);
      signal?.addEventListener("abort", done, { once: true });
      if (signal?.aborted) done();
      void promise.finally(done);
    });
  }

  #warnOnce(text: string): void {
    if (this.#warned.has(text)) return;
    this.#warned.add(text);
    this.#options.warn?.(text.trim());
  }
}

async function callServer(
  connection: McpConnection,
  args: Record<string, unknown>,
  options: CallOptions & ResultOptions,
): Promise<AgentToolResult> {
  return toToolResult(await connection.call(options.tool, args, options), options);
}

/** The one tool by which all others are called: its description never changes. */
function callTool(): McpTool {
  const tool = defineTool({
    name: MCP_CALL,
    presentation: MCP_PRESENTATIONS[MCP_CALL],
    label: "MCP",
    description: `Call a tool that ${TOOL_SEARCH} found.`,
    parameters: {
      type: "object",
      properties: { tool: { type: "string" }, arguments: { type: "object" } },
      required: ["tool", "arguments"],
    } as const,
    // Reached where the call was not turned into one of the tool: then nothing has decided on it.
    execute: () => failed(`${MCP_CALL} needs the middleware that came with it.`),
  });
  return {
    ...tool,
    access: (args) => ({
      kind: "network",
      targets: [String(args["tool"])],
      summary: `Call ${String(args["tool"])}`,
    }),
  };
}

function toStatus({
  name,
  scope,
  config,
}: McpServerEntry): Pick<McpServerStatus, "name" | "scope" | "kind"> {
  return { name, scope, kind: isAddress(config) ? "http" : "stdio" };
}

function toSearched(tool: ServerTool): { name: string; description: string; tool: ServerTool } {
  return { name: tool.name, description: tool.listed.description ?? "", tool };
}

function describeTool({ name, listed }: ServerTool): string {
  const about = cutText(listed.description ?? "", MAX_DESCRIPTION_CHARS);
  return [name, ...(about === "" ? [] : [about]), schemaText(listed)].join("\n");
}

function schemaText({ inputSchema }: ListedTool): string {
  const text = JSON.stringify(inputSchema);
  const shown = cutText(text, MAX_SCHEMA_CHARS);
  return `parameters: ${shown}${shown === text ? "" : " [cut]"}`;
}

/** What there is instead. The names are ours: made of letters, digits and the like. */
function nothingText(query: string, tools: readonly ServerTool[]): string {
  const names = tools.map(({ name }) => name);
  const shown = names.slice(0, MAX_NAMES_LISTED).join(", ");
  const more = names.length > MAX_NAMES_LISTED ? ", ..." : "";
  const found = `Nothing fits ${JSON.stringify(cutText(query, MAX_SUMMARY_CHARS))}.`;
  return names.length === 0 ? found : `${found} Available: ${shown}${more}`;
}

function progressText({
  progress,
  total,
  message,
}: {
  progress: number;
  total?: number;
  message?: string;
}): string {
  const amount = total === undefined ? String(progress) : `${progress}/${total}`;
  const text = message === undefined ? amount : `${amount} ${message}`;
  return sanitize(cutText(text, MAX_PROGRESS_CHARS), ONE_LINE);
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
