import { homedir } from "node:os";
import { isAbsolute, parse, resolve } from "node:path";
import type {
  Client,
  ElicitResult,
  JSONRPCMessage,
  Tool,
  Transport,
} from "@modelcontextprotocol/client";
import type { Clock } from "@gyre/ai";
import { cleanEnvironment, leadsInto, type StdioTransport } from "@gyre/ai/programs";
import type { OAuthSession } from "../auth/oauth-session.ts";
import {
  isAddress,
  type McpAddress,
  type McpProgram,
  type McpServerConfig,
} from "../config/config.ts";
import type { McpFetch } from "../contract/fetch.ts";
import type { Fields } from "../contract/fields.ts";
import type { McpList } from "../contract/list.ts";
import { isBrokenPipe, STATUS, readStatus } from "./problem.ts";

/** From the start of a server to the list of its tools: some are downloaded first. */
export const CONNECT_TIMEOUT_MS = 60_000;
/** A service that does not answer to a goodbye is left. */
const GOODBYE_MS = 1_000;
/** Messages of a server that wait to be dealt with; of more, what needs no answer is dropped. */
const MAX_WAITING = 1_000;

type Program = StdioTransport<JSONRPCMessage>;

/** A connection that is open. */
export interface Live {
  client: Client;
  transport: Transport & { terminateSession?(): Promise<void> };
  /** Of a program. */
  program?: Program;
  /** As they were last listed; absent before that, and after the server said that they have changed. */
  tools?: Promise<readonly Tool[]>;
}

export interface LiveOptions {
  /** With its variables replaced. */
  config: McpServerConfig;
  /** The folder to work in, absolute. */
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  version: string;
  notesFolder?: string;
  fetch?: McpFetch;
  /** Of a server at an address. */
  session?: OAuthSession;
  clock: Clock;
  onStderr: (text: string) => void;
  /** Answers a question of the server. Default: the server is not offered to ask any. */
  answer?: (params: Fields, signal: AbortSignal) => Promise<ElicitResult>;
  /** Called as soon as there is something to close, and throws where it is not wanted any more. */
  onOpening: (live: Live) => void;
  onClose: (live: Live) => void;
  onListChanged: (list: McpList, live: Live) => void;
}

/** Connects to a server, in whichever era of the protocol it speaks. */
export async function openLive(options: LiveOptions): Promise<Live> {
  // A program that does not know a request may exit, or never answer: it is asked in the old way first.
  if (isAddress(options.config)) return attempt(options, "auto");
  const sdk = await import("@modelcontextprotocol/client");
  try {
    return await attempt(options, "legacy");
  } catch (error) {
    // One that has left the old handshake behind says so in one of these ways.
    const isModern =
      error instanceof sdk.ProtocolError || (await readStatus(error)) === STATUS.badRequest;
    if (!isModern) throw error;
    return attempt(options, "auto");
  }
}

/** Says goodbye to a service, so that it can forget the session, and lets it end. */
export async function closeLive({ client, transport }: Live): Promise<void> {
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

async function attempt(options: LiveOptions, mode: "legacy" | "auto"): Promise<Live> {
  const { config, version, answer } = options;
  const sdk = await import("@modelcontextprotocol/client");
  const noteChange = (list: McpList) => ({
    autoRefresh: false,
    debounceMs: 0,
    onChanged: () => options.onListChanged(list, live),
  });
  const client = new sdk.Client(
    { name: "gyre", version },
    {
      capabilities: answer ? { elicitation: { form: { applyDefaults: true }, url: {} } } : {},
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
        tools: noteChange("tools"),
        resources: noteChange("resources"),
        prompts: noteChange("prompts"),
      },
    },
  );
  if (answer) {
    client.setRequestHandler("elicitation/create", ({ params }, { mcpReq: { signal } }) =>
      answer(params, signal),
    );
  }
  const made = isAddress(config) ? await service(config, options) : await program(config, options);
  const live: Live = { client, ...made };
  options.onOpening(live);
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
  client.onclose = () => options.onClose(live);
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
}

async function program(
  config: McpProgram,
  { cwd, env, notesFolder, onStderr }: LiveOptions,
): Promise<{ transport: Program; program: Program }> {
  const [{ StdioTransport: Stdio }, { parseJSONRPCMessage }] = await Promise.all([
    import("@gyre/ai/programs"),
    import("@modelcontextprotocol/client"),
  ]);
  const transport: Program = new Stdio({
    command: config.command,
    args: config.args ?? [],
    cwd: config.cwd === undefined ? neutralFolder(cwd, env) : resolve(cwd, config.cwd),
    env: cleanEnvironment(env, {
      network: true,
      workspace: cwd,
      ...(config.env && { set: config.env }),
    }),
    ...(notesFolder !== undefined && { notesFolder }),
    onStderr,
    parse: parseJSONRPCMessage,
  });
  return { transport, program: transport };
}

async function service(
  { url, headers = {} }: McpAddress,
  { clock, fetch: given = fetch, session }: LiveOptions,
): Promise<Pick<Live, "transport">> {
  const [
    { StreamableHTTPClientTransport: Http },
    { fetchAfterStream, fetchWithHeaders, limitedFetch },
  ] = await Promise.all([import("@modelcontextprotocol/client"), import("./http-transport.ts")]);
  const ours = fetchWithHeaders(given, url, headers);
  const transport = new Http(new URL(url), {
    fetch: fetchAfterStream(limitedFetch(session ? session.wrap(ours) : ours), clock),
  });
  return { transport };
}

/**
 * Where a server starts that names no folder. Not in the workspace: `npx` and `python3 -m` prefer
 * programs of the folder that they start in, and a clone could bring its own.
 */
function neutralFolder(workspace: string, env: LiveOptions["env"]): string {
  const home = env["HOME"] ?? homedir();
  return !isAbsolute(home) || leadsInto(home, workspace) ? parse(workspace).root : home;
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
