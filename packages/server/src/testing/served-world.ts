import { createServer } from "node:http";
import type { Socket } from "node:net";
import { type Clock, type Context, systemClock } from "@gyre/ai";
import {
  type ScriptAnswer,
  type ScriptedModel,
  scriptedModel,
  type ScriptedModelOptions,
} from "@gyre/ai/testing";
import { type Limits, ModelService, WireServer } from "@gyre/protocol";
import {
  closeServer,
  type HttpListener,
  listenHttp,
  listenOn,
  listenTcp,
  LOOPBACK,
  type PortListener,
  makeToken,
  createStreamRoutes,
} from "@gyre/protocol/node";
import { authorizeByToken } from "../handler/authorize.ts";
import { createHandler, type Handler } from "../handler/handler.ts";
import { toNodeListener, toUpgradeListener } from "../node/mount/index.ts";
import { SessionService } from "../sessions/session-service.ts";
import { ScriptedHost, type ScriptedHostOptions } from "./scripted-host.ts";

/** The response to the last question of a context. */
export type AnswerTo = (question: string, context: Context) => ScriptAnswer;

export interface ServedWorldOptions {
  /** Of models, asked by themselves or in a session. */
  answer: AnswerTo;
  scripted?: ScriptedModelOptions;
  host?: Omit<ScriptedHostOptions, "script">;
  /** Names of the server, beside those of loopback. */
  hosts?: readonly string[];
  limits?: Partial<Limits>;
  /** Of each port, and of all together. */
  maxConnections?: number;
  clock?: Clock;
}

/** Models and sessions that follow scripts, on a real server: TCP, and HTTP with WebSocket. */
export interface ServedWorld {
  readonly token: string;
  readonly model: ScriptedModel;
  readonly host: ScriptedHost;
  readonly sessions: SessionService;
  readonly server: WireServer;
  readonly tcp: PortListener;
  readonly http: HttpListener;
  /** The same models and the sessions of the same host, in a handler that is mounted in a server of `node:http`. */
  readonly mounted: MountedHandler;
  /** Errors that no client got. */
  readonly errors: unknown[];
  close(): Promise<void>;
}

export interface MountedHandler {
  readonly handler: Handler;
  readonly port: number;
  /** With the path that it is mounted at. */
  readonly url: string;
  close(): Promise<void>;
}

async function mountHandler(handler: Handler): Promise<MountedHandler> {
  const server = createServer(toNodeListener(handler));
  server.on("upgrade", toUpgradeListener(handler));
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  const port = await listenOn(server, { host: LOOPBACK, port: 0 });
  return {
    handler,
    port,
    url: `http://${LOOPBACK}:${port}/api/gyre`,
    async close() {
      await handler.close();
      await closeServer(server, sockets, systemClock, 0);
    },
  };
}

export async function createServedWorld(options: ServedWorldOptions): Promise<ServedWorld> {
  const { answer, scripted, hosts = [], limits, clock } = options;
  const token = makeToken();
  const errors: unknown[] = [];
  const shared = {
    onError: (error: unknown, where: string) => void errors.push([where, error]),
    ...(limits && { limits }),
    ...(clock && { clock }),
  };
  const script = (context: Context): ScriptAnswer => answer(findLastQuestion(context), context);
  const model = scriptedModel(script, scripted);
  const models = new ModelService({ client: model, models: () => [model.model], ...shared });
  const host = new ScriptedHost({ script, ...options.host });
  const sessions = new SessionService(host, shared);
  const { maxConnections } = options;
  const server = new WireServer([models, sessions], {
    ...shared,
    ...(maxConnections !== undefined && { maxConnections }),
  });
  const serve = (transport: Parameters<WireServer["serve"]>[0]): void =>
    void server.serve(transport);
  const maxFrameBytes = limits?.frameBytes;
  const listening = {
    token,
    serve,
    ...(maxConnections !== undefined && { maxConnections }),
    ...(maxFrameBytes !== undefined && { maxFrameBytes }),
  };
  const tcp = await listenTcp(listening);
  const http = await listenHttp({ ...listening, hosts, routes: createStreamRoutes(models) });
  const authorize = authorizeByToken({ [token]: { user: "ada" } });
  const handler = createHandler({ host, services: [models], authorize, ...shared });
  const mounted = await mountHandler(handler);
  return {
    token,
    mounted,
    model,
    host,
    sessions,
    server,
    tcp,
    http,
    errors,
    async close() {
      await Promise.all([server.close(), mounted.close()]);
      await Promise.all([tcp.close({ graceMs: 0 }), http.close({ graceMs: 0 })]);
    },
  };
}

/** The text of the newest user message. */
export function findLastQuestion({ messages }: Context): string {
  const asked = messages.findLast(({ role }) => role === "user");
  return typeof asked?.content === "string" ? asked.content : "";
}
