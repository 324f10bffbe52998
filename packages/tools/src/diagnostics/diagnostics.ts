import { readFile, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import type { ToolEnv } from "../contract/env.ts";
import { cleanPath } from "@gyre/ai/programs";
import { sanitize } from "@gyre/ai/text";
import { LanguageClient, type Problem } from "./language-client.ts";
import {
  findCommand,
  findServer,
  KNOWN_SERVERS,
  type LanguageServer,
  splitPath,
} from "./language-servers.ts";

export interface DiagnosticsOptions {
  /** Beside those that are known, and before them. */
  servers?: readonly LanguageServer[];
  /** Places that programs may not read. */
  hidden?: readonly string[];
  /** For the first file of a server, which is started for it. Default 8,000. */
  startMs?: number;
  /** For each further file. Default 2,000. */
  checkMs?: number;
}

const START_MS = 8_000;
const CHECK_MS = 2_000;
/** A server that was too slow so often in a row is not waited for again. */
const MAX_LATE = 3;
const MAX_FILES = 5;
const MAX_PROBLEMS = 10;
const MAX_MESSAGE_CHARS = 300;
const MAX_FILE_BYTES = 1_000_000;

/** A server that runs, or that cannot. */
interface Running {
  client: LanguageClient;
  hasAnswered: boolean;
  late: number;
}

/**
 * The errors that language servers find in files after a change. A server runs in the sandbox, sees
 * the workspace, changes nothing in it and has no network. It may run code of the project, so where
 * no sandbox is, only those run that the user's settings name. Each look has a limit of time.
 */
export class Diagnostics {
  readonly #env: ToolEnv;
  readonly #options: DiagnosticsOptions;
  readonly #servers: readonly LanguageServer[];
  readonly #running = new Map<LanguageServer, Promise<Running | undefined>>();

  constructor(env: ToolEnv, options: DiagnosticsOptions = {}) {
    this.#env = env;
    this.#options = options;
    this.#servers = [...(options.servers ?? []), ...KNOWN_SERVERS];
  }

  /** Whether a server would look at a file. */
  knows(path: string): boolean {
    return findServer(this.#servers, path) !== undefined;
  }

  /** What is wrong in files after they were changed, for the model; undefined where nothing is known to be. */
  async describe(paths: readonly string[], signal: AbortSignal): Promise<string | undefined> {
    const known = paths.filter((path) => this.knows(path)).slice(0, MAX_FILES);
    const found = await Promise.all(known.map((path) => this.#check(path, signal)));
    return found.filter((text) => text !== undefined).join("\n") || undefined;
  }

  async close(): Promise<void> {
    const running = await Promise.all(this.#running.values());
    for (const each of running) await each?.client.close();
  }

  async #check(path: string, signal: AbortSignal): Promise<string | undefined> {
    const found = findServer(this.#servers, path);
    const text = await readText(path);
    if (!found || text === undefined) return undefined;
    const { server, language } = found;
    const started = this.#running.get(server) ?? this.#start(server);
    this.#running.set(server, started);
    const running = await started;
    if (!running || running.late >= MAX_LATE) return undefined;
    const { startMs = START_MS, checkMs = CHECK_MS } = this.#options;
    const limit = new AbortController();
    const stop = this.#env.clock.after(running.hasAnswered ? checkMs : startMs, () =>
      limit.abort(),
    );
    try {
      const both = AbortSignal.any([signal, limit.signal]);
      const problems = await running.client.check({ path, language, text }, both);
      running.hasAnswered = true;
      running.late = 0;
      return formatProblems(server.name, relative(this.#env.workspace.root, path), problems);
    } catch {
      // A server that fails or is late says nothing; the change itself was made.
      running.late = limit.signal.aborted || signal.aborted ? running.late + 1 : MAX_LATE;
      return undefined;
    } finally {
      stop();
    }
  }

  /** Undefined where the server is not installed, or may not run. */
  async #start(server: LanguageServer): Promise<Running | undefined> {
    const { workspace, environment, clock } = this.#env;
    const { root } = workspace;
    // Without a sandbox tools start nothing, or the user has chosen that there is none.
    const sandbox = await this.#env.sandbox().catch(() => undefined);
    const isConfined = sandbox !== undefined && sandbox.kind !== "none";
    if (!isConfined && !server.isChosen) return undefined;
    const outside = splitPath(cleanPath(environment["PATH"], root));
    const inside = isConfined ? [join(root, "node_modules", ".bin")] : [];
    const argv = findCommand(server.commands, [...inside, ...outside]);
    if (!argv) return undefined;
    const program = { argv, cwd: root, env: environment };
    const hidden = this.#options.hidden ?? [];
    // A /tmp that the sandbox has of its own would hide a workspace in it.
    const policy = { writable: [], readOnly: [root], hidden, network: false };
    const confined = isConfined ? sandbox.wrap(program, policy) : program;
    return { client: new LanguageClient(confined, root, clock), hasAnswered: false, late: 0 };
  }
}

async function readText(path: string): Promise<string | undefined> {
  try {
    const { size } = await stat(path);
    return size > MAX_FILE_BYTES ? undefined : await readFile(path, "utf8");
  } catch {
    // The call has removed it.
    return undefined;
  }
}

function formatProblems(
  server: string,
  path: string,
  problems: readonly Problem[],
): string | undefined {
  if (problems.length === 0) return undefined;
  const lines = problems.slice(0, MAX_PROBLEMS).map(({ line, column, message, code }) => {
    const text = sanitize(message).replaceAll(/\s+/g, " ").slice(0, MAX_MESSAGE_CHARS);
    return `${path}:${line}:${column} ${text}${code === undefined ? "" : ` (${code})`}`;
  });
  const more = problems.length - lines.length;
  if (more > 0) lines.push(`and ${more} more`);
  const count = problems.length === 1 ? "1 error" : `${problems.length} errors`;
  return `${server} now finds ${count} in ${path}:\n${lines.join("\n")}`;
}
