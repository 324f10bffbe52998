import { createHash, randomUUID } from "node:crypto";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { type ApprovalAnswer, type ApprovalRequest, sanitize, type Toolset } from "@gyre/tools";
import {
  filePins,
  type Mcp,
  type McpChanges,
  type McpFetch,
  type McpServerEntry,
  memoryPins,
  openMcp,
  type PinStore,
} from "@gyre/tools/mcp";
import { EDITOR_SCOPE, PROGRAM_SCOPE } from "./tools.ts";
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
  const { servers, cwd, env, warn, ask, toolset } = setup;
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
    fetch: lateFetch(env),
    ...(toolset && { spoolFolder: toolset.env.spoolFolder }),
    ...(ask && { acceptChanges: (changes, signal) => isAccepted(ask, changes, signal) }),
  });
  // An editor shows them as connected.
  if (servers.some(({ scope }) => scope === EDITOR_SCOPE)) void mcp.connect();
  return mcp;
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
    loaded ??= import("../core/proxy-fetch.ts").then(({ proxiedWebFetch }) => proxiedWebFetch(env));
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
