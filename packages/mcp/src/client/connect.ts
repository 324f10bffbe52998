import { type Clock, systemClock } from "@gyre/ai";
import type { LoginStore } from "../auth/login-store.ts";
import type { McpLogin } from "../auth/login.ts";
import { checkEntries, type McpServerConfig } from "../config/config.ts";
import type { McpFetch } from "../contract/fetch.ts";
import type { AskQuestion } from "../contract/question.ts";
import { McpConnection } from "./connection.ts";
import type { McpList } from "../contract/list.ts";

export interface ConnectMcpOptions {
  config: McpServerConfig;
  /** What it is called in errors. Default: "server". */
  name?: string;
  /** Where its configuration is from: logins of one place are not those of another. Default: "user". */
  scope?: string;
  /** The folder to work in, absolute. Default: that of this process. */
  cwd?: string;
  /** Where the values of `${NAME}` come from. Default: the variables of this process. */
  env?: Readonly<Record<string, string | undefined>>;
  /** Where logins are kept. Default: in memory. */
  logins?: LoginStore;
  /** Opens the way to a person who can log in. Default: only what is stored is used. */
  openLogin?: (options: { port?: number }) => Promise<McpLogin>;
  /** Has a person answer questions of the server. Default: it is not offered to ask any. */
  ask?: AskQuestion;
  /** Called when the server says that one of its lists is another one by now. */
  onListChanged?: (list: McpList) => void;
  /** Gets what a program writes to its standard error. */
  log?: (text: string) => void;
  fetch?: McpFetch;
  /** Of the application, sent to the server. */
  version?: string;
  clock?: Clock;
}

/**
 * A client of one server, without an agent. Nothing is started before the first request. Throws
 * `McpConfigError` for a configuration that cannot be used.
 */
export function connectMcp(options: ConnectMcpOptions): McpConnection {
  const { config, name = "server", scope = "user" } = options;
  const entry = { name, scope, config };
  checkEntries([entry]);
  const { logins, openLogin, ask, onListChanged, log, fetch } = options;
  return new McpConnection(entry, {
    cwd: options.cwd ?? process.cwd(),
    env: options.env ?? process.env,
    version: options.version ?? "0",
    clock: options.clock ?? systemClock,
    log: (_server, text) => log?.(text),
    ...(logins && { logins }),
    ...(openLogin && { openLogin }),
    ...(ask && { ask }),
    ...(onListChanged && { onListChanged }),
    ...(fetch && { fetch }),
  });
}
