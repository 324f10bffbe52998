import { randomUUID } from "node:crypto";
import type {
  Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { MAX_MESSAGE_BYTES } from "@gyre/ai/programs";
import type { McpList } from "../contract/list.ts";
import type { McpOffer } from "./offer.ts";
import { createServerMaker, type ServerMaker } from "./server.ts";

/** Clients of the older era that are remembered; of more, the one that was quiet for longest is forgotten. */
export const MAX_SESSIONS = 1_000;
const SESSION_HEADER = "mcp-session-id";
const STATUS = { badRequest: 400, notFound: 404 } as const;

export interface McpHandlerOptions extends McpOffer {
  /**
   * Names of hosts by which it may be asked: a page of another site could otherwise have its name lead
   * here. Default: those of this machine. "any": whatever stands before it looks at that.
   */
  hosts?: readonly string[] | "any";
}

/** A server for HTTP, in both eras of the protocol. */
export interface McpHandler {
  /** Answers one request. Checks who asks only as far as `hosts` says. */
  fetch(request: Request): Promise<Response>;
  /** Notifies clients that a list is another one by now. */
  changed(list: McpList): void;
  /** Notifies clients that watch a resource that it is another one by now. */
  updated(uri: string): void;
  /** Ends what runs, and forgets all clients. */
  close(): Promise<void>;
}

/** A client of the older era. */
interface Session {
  server: Server;
  transport: WebStandardStreamableHTTPServerTransport;
}

/** Makes a handler of web requests, for any server that has these. */
export async function createMcpHandler(options: McpHandlerOptions): Promise<McpHandler> {
  const sdk = await import("@modelcontextprotocol/server");
  const maker = await createServerMaker(options);
  const onerror = (error: Error): void => options.warn?.(error.message);
  const modern = sdk.createMcpHandler(({ era }) => maker.create(era), {
    legacy: "reject",
    maxRequestBodySize: MAX_MESSAGE_BYTES,
    onerror,
  });
  const sessions = new Sessions(maker, onerror);
  const { hosts = sdk.localhostAllowedHostnames() } = options;
  return {
    async fetch(request) {
      const refusal =
        hosts === "any"
          ? undefined
          : (sdk.hostHeaderValidationResponse(request, [...hosts]) ??
            sdk.originValidationResponse(request, [...hosts]));
      if (refusal) return refusal;
      const limit = { maxRequestBodySize: MAX_MESSAGE_BYTES };
      const isLegacy = await sdk.isLegacyRequest(request, undefined, limit);
      return isLegacy ? sessions.fetch(request) : modern.fetch(request);
    },
    changed(list) {
      if (list === "tools") modern.notify.toolsChanged();
      if (list === "prompts") modern.notify.promptsChanged();
      if (list === "resources") modern.notify.resourcesChanged();
      sessions.notify((server) => notifyChanged(server, list));
    },
    updated(uri) {
      modern.notify.resourceUpdated(uri);
      sessions.notify((server) =>
        maker.watchedBy(server).has(uri) ? server.sendResourceUpdated({ uri }) : undefined,
      );
    },
    async close() {
      await modern.close();
      await sessions.close();
    },
  };
}

function notifyChanged(server: Server, list: McpList): Promise<void> {
  if (list === "tools") return server.sendToolListChanged();
  return list === "prompts" ? server.sendPromptListChanged() : server.sendResourceListChanged();
}

/** The older era: a client has a session, from its first request until it ends it. */
class Sessions {
  readonly #maker: ServerMaker;
  readonly #onerror: (error: Error) => void;
  /** In the order of their last use. */
  readonly #open = new Map<string, Session>();

  constructor(maker: ServerMaker, onerror: (error: Error) => void) {
    this.#maker = maker;
    this.#onerror = onerror;
  }

  async fetch(request: Request): Promise<Response> {
    const id = request.headers.get(SESSION_HEADER);
    if (id === null) return (await this.#create()).transport.handleRequest(request);
    const session = this.#open.get(id);
    if (!session) return refuse(STATUS.notFound, "There is no such session: initialize again.");
    this.#open.delete(id);
    this.#open.set(id, session);
    return session.transport.handleRequest(request);
  }

  notify(send: (server: Server) => Promise<void> | undefined): void {
    for (const { server } of this.#open.values()) send(server)?.catch(this.#onerror);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ server }) => server.close()));
    this.#open.clear();
  }

  /** It counts from the moment that the client has begun with the protocol. */
  async #create(): Promise<Session> {
    const { WebStandardStreamableHTTPServerTransport: Transport } =
      await import("@modelcontextprotocol/server");
    const server = this.#maker.create("legacy");
    const transport = new Transport({
      sessionIdGenerator: randomUUID,
      maxRequestBodySize: MAX_MESSAGE_BYTES,
      onsessioninitialized: (id) => {
        this.#open.set(id, { server, transport });
        for (const [oldest, { server: quiet }] of this.#open) {
          if (this.#open.size <= MAX_SESSIONS) break;
          this.#open.delete(oldest);
          quiet.close().catch(this.#onerror);
        }
      },
      onsessionclosed: (id) => void this.#open.delete(id),
    });
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no event target
    server.onerror = this.#onerror;
    await server.connect(transport);
    return { server, transport };
  }
}

function refuse(status: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", id: null, error: { code: -32_000, message } }, { status });
}
