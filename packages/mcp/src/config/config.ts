import { toUrl } from "@gyre/ai";
import { type Fields, isFields, isTextList, isTexts } from "../contract/fields.ts";

/** What holds for a server however it is reached. */
interface ServerSettings {
  /** It is not used. */
  disabled?: boolean;
  /** Milliseconds that a call may take without a sign of progress. */
  timeout?: number;
  /** Names of the tools that are used, `*` for anything. Default: all. */
  tools?: readonly string[];
  /** The model gets its tools at once, instead of being found by `tool_search`. */
  direct?: boolean;
}

/** A server that is started as a program, and that communicates on its standard input and output. */
export interface McpProgram extends ServerSettings {
  type?: "stdio";
  command: string;
  args?: readonly string[];
  /** Added to a clean environment. */
  env?: Readonly<Record<string, string>>;
  /** Where it is started. Default: the folder to work in. */
  cwd?: string;
}

/** A server at an address, reached by streamable HTTP. */
export interface McpAddress extends ServerSettings {
  type?: "http";
  url: string;
  headers?: Readonly<Record<string, string>>;
  /** How to log in where the server asks for it. False: never. Default: as the server says. */
  oauth?: McpOAuth | false;
}

/** What an authorization server knows us by. Without any of it we register with each server. */
export interface McpOAuth {
  clientId?: string;
  clientSecret?: string;
  /** The authorization server that gave these out: no other one gets them. Default: the first. */
  issuer?: string;
  /** An https address of a document that describes the client, for servers that read such. */
  clientMetadataUrl?: string;
  /** Asked for beside those that the server names. */
  scopes?: readonly string[];
  /** The port of this machine that the browser is sent back to. Default: one that is free. */
  callbackPort?: number;
}

/** A server: a program to start, or an address. */
export type McpServerConfig = McpProgram | McpAddress;

/** A server, and who configured it: pins of one are not those of another with its name. */
export interface McpServerEntry {
  name: string;
  config: McpServerConfig;
  /** "user", "editor", or the folder of a project. */
  scope: string;
  /** Variables in it are not replaced. */
  isLiteral?: boolean;
  /** Called before each start of its program. Throws where that may not be run. */
  check?: () => void;
}

/** What `readMcpServers` found: the servers that can be used, and what is wrong with the rest. */
export interface McpServersRead {
  servers: Record<string, McpServerConfig>;
  /** All that is wrong, one line each; a server with a problem is not among `servers`. */
  problems: string[];
}

/** What a timer can hold: 24 days. */
const MAX_TIMEOUT_MS = 2_147_483_647;
const MAX_SERVERS = 100;
/** Names that other clients of MCP have for it. */
const HTTP_TYPES: ReadonlySet<unknown> = new Set(["http", "streamable-http", "streamableHttp"]);

/** Reads an object of servers by name, as `.mcp.json` has it under "mcpServers". Never throws. */
export function readMcpServers(value: unknown): McpServersRead {
  const read: McpServersRead = { servers: {}, problems: [] };
  if (!isFields(value)) {
    read.problems.push("it must be an object of servers by name");
    return read;
  }
  const named = Object.entries(value);
  if (named.length > MAX_SERVERS) {
    read.problems.push(`there are ${named.length} servers, and at most ${MAX_SERVERS} are used`);
  }
  for (const [name, given] of named.slice(0, MAX_SERVERS)) {
    const problem = problemWith(name, given);
    if (problem === undefined && isFields(given)) {
      Object.defineProperty(read.servers, name, {
        value: toServerConfig(given),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    } else read.problems.push(`${JSON.stringify(name)} ${problem}`);
  }
  return read;
}

/** Throws `McpConfigError` on what a compiler would find in the servers of `openMcp`. */
export function checkEntries(servers: unknown): void {
  const form = `write servers: [{ name: "docs", scope: "user", config: { url: "https://…" } }].`;
  if (!Array.isArray(servers)) {
    throw new McpConfigError(`The \`servers\` of openMcp are a list of entries: ${form}`);
  }
  for (const entry of servers as readonly unknown[]) {
    if (!isFields(entry) || typeof entry["name"] !== "string") {
      throw new McpConfigError(`An MCP server has a name, a scope and a config: ${form}`);
    }
    const { name, config } = entry;
    if (!isFields(config)) {
      throw new McpConfigError(
        `What the MCP server "${name}" is reached by belongs into its \`config\`: ${form}`,
      );
    }
    const problem = problemWithConfig(config);
    if (problem !== undefined) throw new McpConfigError(`The MCP server "${name}" ${problem}.`);
  }
}

/** The end of a sentence that begins with the name. */
function problemWith(name: string, given: unknown): string | undefined {
  if (!/[a-z0-9]/i.test(name)) return "is no name: it needs a letter or a digit";
  return problemWithConfig(given);
}

function problemWithConfig(given: unknown): string | undefined {
  if (!isFields(given)) return "must be an object";
  const { type, command, url, args, env, headers, cwd, disabled, timeout, tools, direct } = given;
  if (type === "sse" || type === "ws") {
    return `has the type "${type}", which is not supported: use "http" (streamable HTTP)`;
  }
  if (type !== undefined && type !== "stdio" && !HTTP_TYPES.has(type)) {
    return 'must have the type "stdio" or "http"';
  }
  const isHttp = HTTP_TYPES.has(type) || (type === undefined && command === undefined);
  if (isHttp) {
    if (typeof url !== "string" || url === "") return "needs a command or a url";
    if (command !== undefined) return "has a command and a url: it can have one of them";
    if (headers !== undefined && !isTexts(headers)) return "headers must be an object of texts";
    const problem = problemWithOAuth(given["oauth"]);
    if (problem !== undefined) return problem;
  } else {
    if (typeof command !== "string" || command === "") return "needs a command";
    if (args !== undefined && !isTextList(args)) return "args must be a list of texts";
    if (env !== undefined && !isTexts(env)) return "env must be an object of texts";
    if (cwd !== undefined && typeof cwd !== "string") return "cwd must be a text";
  }
  if (disabled !== undefined && typeof disabled !== "boolean")
    return "disabled must be true or false";
  if (direct !== undefined && typeof direct !== "boolean") return "direct must be true or false";
  if (tools !== undefined && !isTextList(tools)) return "tools must be a list of names";
  const isTime = typeof timeout === "number" && timeout > 0 && timeout <= MAX_TIMEOUT_MS;
  if (timeout !== undefined && !isTime) return "timeout must be milliseconds, a number above 0";
  return undefined;
}

const OAUTH_TEXTS = ["clientId", "clientSecret", "issuer", "clientMetadataUrl"] as const;
const MAX_PORT = 65_535;

function problemWithOAuth(oauth: unknown): string | undefined {
  if (oauth === undefined || oauth === false) return undefined;
  if (!isFields(oauth)) return "oauth must be an object, or false";
  for (const name of OAUTH_TEXTS) {
    const value = oauth[name];
    if (value !== undefined && (typeof value !== "string" || value === "")) {
      return `oauth.${name} must be a text`;
    }
  }
  const { clientId, clientSecret, clientMetadataUrl, scopes, callbackPort: port } = oauth;
  if (clientSecret !== undefined && clientId === undefined) {
    return "oauth.clientSecret needs an oauth.clientId";
  }
  const document = typeof clientMetadataUrl === "string" ? toUrl(clientMetadataUrl) : undefined;
  if (
    clientMetadataUrl !== undefined &&
    (document?.protocol !== "https:" || document.pathname === "/")
  ) {
    return "oauth.clientMetadataUrl must be an https address with a path";
  }
  if (scopes !== undefined && !isTextList(scopes)) return "oauth.scopes must be a list of texts";
  const isPort = Number.isInteger(port) && Number(port) > 0 && Number(port) <= MAX_PORT;
  if (port !== undefined && !isPort) return "oauth.callbackPort must be the number of a port";
  return undefined;
}

function toOAuth(given: unknown): McpOAuth | false | undefined {
  if (given === false) return false;
  if (!isFields(given)) return undefined;
  const texts = OAUTH_TEXTS.map((name) => [name, given[name]] as const);
  const { scopes, callbackPort } = given;
  return {
    ...Object.fromEntries(texts.filter(([, value]) => typeof value === "string")),
    ...(isTextList(scopes) && { scopes }),
    ...(typeof callbackPort === "number" && { callbackPort }),
  };
}

/** Of fields that have no problem: those that are known, so that a pin is of these alone. */
function toServerConfig(given: Fields): McpServerConfig {
  const { command, url, args, env, headers, cwd, disabled, timeout, tools, direct } = given;
  const common: ServerSettings = {
    ...(typeof disabled === "boolean" && { disabled }),
    ...(typeof timeout === "number" && { timeout }),
    ...(isTextList(tools) && { tools }),
    ...(typeof direct === "boolean" && { direct }),
  };
  if (typeof command === "string") {
    return {
      command,
      ...(isTextList(args) && { args }),
      ...(isTexts(env) && { env }),
      ...(typeof cwd === "string" && { cwd }),
      ...common,
    };
  }
  const oauth = toOAuth(given["oauth"]);
  return {
    type: "http",
    url: String(url),
    ...(isTexts(headers) && { headers }),
    ...(oauth !== undefined && { oauth }),
    ...common,
  };
}

/** Whether a server is at an address, and not a program to start. */
export function isAddress(config: McpServerConfig): config is McpAddress {
  return config.type === "http" || !("command" in config);
}

/** A configuration that cannot be used as it is. */
export class McpConfigError extends Error {
  readonly code = "bad_mcp_config";
}

const VARIABLE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

/** The text with the values of `${NAME}` and `${NAME:-default}`. Throws `McpConfigError`. */
export function expandVariables(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): string {
  return text.replace(VARIABLE, (_whole, name: string, fallback?: string) => {
    const value = env[name];
    // Set to nothing is not set, as in a shell that is asked the same way.
    if (value !== undefined && (value !== "" || fallback === undefined)) return value;
    if (fallback !== undefined) return fallback;
    throw new McpConfigError(`The variable ${name} is not set.`);
  });
}

/** The variables whose values a server would be given. */
export function variablesIn(config: McpServerConfig): string[] {
  const texts = isAddress(config)
    ? [config.url, ...Object.values(config.headers ?? {}), ...oauthTexts(config)]
    : [
        config.command,
        ...(config.args ?? []),
        ...Object.values(config.env ?? {}),
        config.cwd ?? "",
      ];
  const names = texts.flatMap((text) => [...text.matchAll(VARIABLE)].map(([, name]) => name ?? ""));
  return [...new Set(names)];
}

/** The texts of a client, each through `change`. */
function changeTexts(oauth: McpOAuth, change: (value: string) => string): Partial<McpOAuth> {
  return Object.fromEntries(
    OAUTH_TEXTS.flatMap((name) => {
      const value = oauth[name];
      return value === undefined ? [] : [[name, change(value)]];
    }),
  );
}

function oauthTexts({ oauth }: McpAddress): string[] {
  if (!oauth) return [];
  return OAUTH_TEXTS.flatMap((name) => oauth[name] ?? []);
}

/** The same configuration with all variables replaced. Throws `McpConfigError`. */
export function expandConfig(
  config: McpServerConfig,
  env: Readonly<Record<string, string | undefined>>,
): McpServerConfig {
  const text = (value: string): string => expandVariables(value, env);
  const texts = (values: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, text(value)]));
  if (isAddress(config)) {
    const url = text(config.url);
    const isWeb = /^https?:$/.test(toUrl(url)?.protocol ?? "");
    if (!isWeb) throw new McpConfigError("Its url is not an address that begins with http.");
    const { headers, oauth } = config;
    return {
      ...config,
      url,
      ...(headers && { headers: texts(headers) }),
      ...(oauth && { oauth: { ...oauth, ...changeTexts(oauth, text) } }),
    };
  }
  return {
    ...config,
    command: text(config.command),
    ...(config.args && { args: config.args.map(text) }),
    ...(config.env && { env: texts(config.env) }),
    ...(config.cwd !== undefined && { cwd: text(config.cwd) }),
  };
}

/** Whether a tool of this name is wanted by a filter; `*` stands for anything. */
export function isWanted(name: string, filter: readonly string[] | undefined): boolean {
  if (!filter) return true;
  return filter.some((pattern) => {
    const [first = "", ...rest] = pattern.split("*");
    const last = rest.pop();
    if (last === undefined) return name === pattern;
    if (!name.startsWith(first)) return false;
    let at = first.length;
    for (const piece of rest) {
      const found = name.indexOf(piece, at);
      if (found < 0) return false;
      at = found + piece.length;
    }
    return name.length - last.length >= at && name.endsWith(last);
  });
}
