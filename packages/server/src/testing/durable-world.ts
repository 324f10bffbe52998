import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentOptions, type AgentTool, defineTool } from "@gyre/agent";
import { scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import {
  defineAgent,
  type DurableAgent,
  DurableError,
  openRuns,
  Runs,
  type Store,
  Worker,
} from "@gyre/durable";
import { createTransportPair, type Transport, WireClient, WireServer } from "@gyre/protocol";
import { DurableHost, type DurableHostOptions } from "../node/durable-host.ts";
import { SessionService } from "../sessions/session-service.ts";

/** A server of a store that others share. */
export interface DurableServer {
  readonly runs: Runs;
  readonly worker: Worker | undefined;
  readonly errors: unknown[];
  /** While it is set, no request reaches the store. */
  isAway: boolean;
  connect(): Transport;
  /** Breaks all connections; the worker goes on. */
  cut(): void;
  /** Ends without a goodbye: what it has claimed is lost with it. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

export interface DurableWorld {
  readonly url: string;
  open(agents: readonly DurableAgent[], options?: ServerOptions): Promise<DurableServer>;
  /** A client that connects to one server after the other. */
  client(...servers: readonly DurableServer[]): WireClient;
  close(): Promise<void>;
}

type ServerOptions = Pick<DurableHostOptions, "toolGraceMs">;

interface Opened extends DurableServer {
  readonly isGone: () => boolean;
}

/** Servers of one file, in this process, each as if it had a process of its own. */
export function createDurableWorld(url?: string): DurableWorld {
  const folder = mkdtempSync(join(tmpdir(), "gyre-shared-"));
  const place = url ?? `file:${join(folder, "runs.db")}`;
  const opened: Opened[] = [];
  const clients: WireClient[] = [];
  return {
    url: place,
    async open(agents, options = {}) {
      const server = await openServer(place, agents, options);
      opened.push(server);
      return server;
    },
    client(...servers) {
      let nth = 0;
      const client = new WireClient({
        random: () => 0,
        connect: async () => {
          const all = opened.filter((each) => servers.includes(each));
          for (let tries = 0; tries < all.length; tries++) {
            const server = all[nth++ % all.length];
            if (server && !server.isGone()) return server.connect();
          }
          throw new Error("No server is there.");
        },
      });
      clients.push(client);
      return client;
    },
    async close() {
      await Promise.all(clients.map((client) => client.close()));
      await Promise.all(opened.map((server) => server.close()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function openServer(
  url: string,
  agents: readonly DurableAgent[],
  options: ServerOptions,
): Promise<Opened> {
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const opened = await openRuns(url, { onError });
  const state = { isAway: false };
  const runs = new Runs(withOutages(opened.store, state), { onError });
  const worker = agents.length > 0 ? new Worker(runs, { agents, leaseMs: 400 }) : undefined;
  await worker?.start();
  const host = new DurableHost({ runs, agent: "office", onError, ...options });
  const service = new SessionService(host, { onError });
  const wire = new WireServer([service], { onError });
  const transports = new Set<Transport>();
  let isGone = false;
  const cut = (): void => {
    for (const transport of transports) void transport.close();
    transports.clear();
  };
  const close = async (drainMs: number): Promise<void> => {
    if (isGone) return;
    isGone = true;
    await worker?.stop({ drainMs });
    await wire.close();
    await runs.close();
  };
  return {
    ...{ runs, worker, errors, cut },
    get isAway() {
      return state.isAway;
    },
    set isAway(isAway) {
      state.isAway = isAway;
    },
    isGone: () => isGone,
    connect() {
      const [near, far] = createTransportPair();
      transports.add(far);
      wire.serve(far);
      return near;
    },
    kill: () => {
      cut();
      return close(0);
    },
    close: () => close(1_000),
  };
}

/** A store that does not answer while it is away. */
function withOutages(store: Store, state: { readonly isAway: boolean }): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      if (["listen", "close"].includes(String(name))) return value.bind(target);
      return (...args: unknown[]): unknown =>
        state.isAway
          ? Promise.reject(new DurableError("unavailable", "The store is away."))
          : Reflect.apply(value, target, args);
    },
  });
}

/** Answers by how many answers the transcript has already. */
export function followScript(answers: readonly ScriptStep[]): ScriptStep {
  return (context, options, nth) => {
    const answered = context.messages.filter(({ role }) => role === "assistant").length;
    const answer = answers[answered] ?? `Answer ${answered + 1}.`;
    return typeof answer === "function" ? answer(context, options, nth) : answer;
  };
}

/** An agent named "office" whose model answers by how many answers the transcript has already. */
export function officeAgent(
  answers: readonly ScriptStep[],
  tools: readonly AgentTool[] = [],
  more: Pick<AgentOptions, "context"> = {},
): DurableAgent {
  return defineAgent({
    name: "office",
    version: "1",
    open: () => {
      const model = scriptedModel(Array.from({ length: 100 }, () => followScript(answers)));
      return { model: model.model, protocol: model, instructions: "Be brief.", tools, ...more };
    },
  });
}

/** A tool of one text. */
export function textTool(
  name: string,
  execute: (text: string) => string | Promise<string>,
  more: Partial<AgentTool> = {},
): AgentTool {
  const parameters = { type: "object", properties: { text: { type: "string" } } } as const;
  return {
    ...defineTool({
      name,
      description: name,
      parameters,
      execute: ({ text = "" }) => execute(text),
    }),
    ...more,
  };
}
