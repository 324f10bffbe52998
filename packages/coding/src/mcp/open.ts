import { createHash, randomUUID } from "node:crypto";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { type ApprovalAnswer, type ApprovalRequest, sanitize, type Toolset } from "@gyre/tools";
import {
  type AskQuestion,
  expandVariables,
  fileLogins,
  filePins,
  type Mcp,
  type McpAddress,
  type McpChanges,
  McpConfigError,
  type McpFetch,
  type McpOptions,
  type McpServerEntry,
  memoryPins,
  openMcp,
  type PinStore,
} from "@gyre/mcp";
import { EDITOR_SCOPE, PROGRAM_SCOPE, USER_SCOPE } from "./tools.ts";
import { mcpLog } from "./log.ts";
import { oneLine } from "../settings/problem.ts";
import type { Environment } from "../core/environment.ts";
import { version } from "../core/version.ts";

const MAX_SHOWN_CHARS = 4_000;

type AskUser = (request: ApprovalRequest) => Promise<ApprovalAnswer>;

export interface McpSetup {
  servers: readonly McpServerEntry[];
  /** The folder to work in, absolute. */
  cwd: string;
  env: Environment;
  warn: (text: string) => void;
  /** Asks the user about changed tools. Default: changed tools are left out. */
  ask?: AskUser;
  /** Has the user answer servers. Default: they are declined. */
  answerServer?: AskQuestion;
  /** How the user logs in. Default: only logins that are stored are used. */
  openLogin?: McpOptions["openLogin"];
  toolset?: Toolset;
}

/** The folder for what is remembered of MCP servers. */
export function mcpFolder(env: Environment): string {
  const state = env["XDG_STATE_HOME"];
  const base = state && isAbsolute(state) ? state : join(homedir(), ".local", "state");
  return join(base, "gyre", "mcp");
}

/** MCP as the program has it: pins and logs in the user's state folder, changes asked about. */
export async function openProgramMcp(setup: McpSetup): Promise<Mcp> {
  const { answerServer, servers, cwd, env, warn, ask, openLogin, toolset } = setup;
  const folder = mcpFolder(env);
  const mcp = await openMcp({
    servers,
    cwd,
    env,
    // Names of servers and tools are chosen by others.
    warn: (text) => warn(oneLine(text)),
    version: version(),
    pins: openPins(join(folder, "pins.json")),
    log: mcpLog(join(folder, "logs")),
    logins: fileLogins(join(folder, "logins")),
    ask: answerServer ?? (() => Promise.resolve({ action: "decline" })),
    fetch: lateFetch(env),
    ...(openLogin && { openLogin }),
    ...(toolset && { spoolFolder: toolset.env.spoolFolder }),
    ...(ask && { acceptChanges: (changes, signal) => isAccepted(ask, changes, signal) }),
  });
  // An editor shows them as connected.
  if (servers.some(({ scope }) => scope === EDITOR_SCOPE)) void mcp.connect();
  return mcp;
}

/** Forgets what the user's login to a server at an address left. */
export function forgetStoredLogin(name: string, server: McpAddress, env: Environment): void {
  let url: string;
  try {
    url = expandVariables(server.url, env);
  } catch (error) {
    // Without the value there is no address, and so no login to it.
    if (error instanceof McpConfigError) return;
    throw error;
  }
  fileLogins(join(mcpFolder(env), "logins")).write({ name, scope: USER_SCOPE, url }, undefined);
}

/** Pins of the user's servers last; a program vouches for its own each time. */
function openPins(file: string): PinStore {
  const [lasting, own] = [filePins(file), memoryPins()];
  const choose = ({ scope }: McpServerEntry): PinStore => (scope === PROGRAM_SCOPE ? own : lasting);
  return {
    compare: (server, tools) => choose(server).compare(server, tools),
    accept: (server, tools) => choose(server).accept(server, tools),
  };
}

/** Through the proxy of the environment, and with no end to silence but ours; loaded when used. */
function lateFetch(env: Environment): McpFetch {
  let loaded: Promise<McpFetch> | undefined;
  return async (url, init) => {
    loaded ??= import("../core/proxied-web-fetch.ts").then(({ proxiedWebFetch }) =>
      proxiedWebFetch(env),
    );
    return (await loaded)(url, init);
  };
}

async function isAccepted(
  ask: AskUser,
  { server, changed, added, tools }: McpChanges,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const isNew = new Set(added);
  const says = tools
    .map(({ name, description = "", inputSchema }) => {
      const what = isNew.has(name) ? "new" : "changed";
      return `${name} (${what}): ${description} ${JSON.stringify(inputSchema)}`;
    })
    .join(" | ");
  const asked = sanitize(`Use changed tools of the MCP server "${server}". They say now: ${says}`, {
    keepNewlines: false,
    exact: true,
  });
  // What is left out may be what matters.
  const more = ` [Cut here: "gyre mcp trust ${server}" shows all.]`;
  const summary = asked.length > MAX_SHOWN_CHARS ? asked.slice(0, MAX_SHOWN_CHARS) + more : asked;
  const args = { server, changed, added };
  const answer = await ask({
    callId: `mcp-${randomUUID()}`,
    tool: "mcp",
    args,
    access: {
      kind: "network",
      targets: [server],
      summary,
    },
    reason: `The MCP server "${server}" says something else of its tools than when they were accepted.`,
    fingerprint: createHash("sha256")
      .update(JSON.stringify([args, tools]))
      .digest("hex"),
    ...(signal && { signal }),
  });
  return answer.allow !== false;
}
