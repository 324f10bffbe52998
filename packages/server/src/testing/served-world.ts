import { type Clock, type Context } from "@gyre/ai";
import {
  type ScriptAnswer,
  type ScriptedModel,
  scriptedModel,
  type ScriptedModelOptions,
} from "@gyre/ai/testing";
import { type Limits, ModelService, WireServer } from "@gyre/protocol";
import {
  type HttpListener,
  listenHttp,
  listenTcp,
  type PortListener,
  makeToken,
  createStreamRoutes,
} from "@gyre/protocol/node";
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
  /** Errors that no client got. */
  readonly errors: unknown[];
  close(): Promise<void>;
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
  return {
    token,
    model,
    host,
    sessions,
    server,
    tcp,
    http,
    errors,
    async close() {
      await server.close();
      await Promise.all([tcp.close({ graceMs: 0 }), http.close({ graceMs: 0 })]);
    },
  };
}

/** The text of the newest user message. */
export function findLastQuestion({ messages }: Context): string {
  const asked = messages.findLast(({ role }) => role === "user");
  return typeof asked?.content === "string" ? asked.content : "";
}
