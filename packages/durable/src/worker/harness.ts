import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentTool, defineTool } from "@gyre/agent";
import { scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import type { SessionStorage } from "@gyre/sessions";
import type { StorageUnderTest } from "@gyre/sessions/testing";
import { defineAgent, type DurableAgent, type DurableAgentOptions } from "../contract/agent.ts";
import type { Store } from "../contract/store.ts";
import type { StoreOptions } from "../contract/types.ts";
import { openRuns, openStore } from "../runs/open.ts";
import type { EngineSpec } from "../testing/engine.ts";
import { Runs } from "../runs/runs.ts";
import { Worker, type WorkerOptions } from "./worker.ts";

/** `npm run durable -- conform` has the tests run on a database: each store is a schema of it. */
const database = process.env["GYRE_DURABLE_URL"];

/** Some tests are about files alone. */
export const isFile: boolean = database === undefined;

/** What decides who works on runs, where that is not the store: the same for all workers of a file of tests. */
export const engineSpec: EngineSpec | undefined = readEngine(process.env["GYRE_DURABLE_ENGINE"]);

function readEngine(text: string | undefined): EngineSpec | undefined {
  if (text === undefined) return undefined;
  const spec: EngineSpec = JSON.parse(text);
  const name = `gyre-${process.pid}`;
  return spec.name === "dbos"
    ? { name: "dbos", options: { ...spec.options, queue: name } }
    : { name: "restate", options: { ...spec.options, service: name } };
}

/** The addresses of empty stores: files that are removed after the tests. */
export function temporaryUrls(name: string, afterAll: (clean: () => void) => void): () => string {
  const folder = mkdtempSync(join(tmpdir(), `gyre-${name}-`));
  afterAll(() => rmSync(folder, { recursive: true }));
  let count = 0;
  return () =>
    database === undefined
      ? `file:${join(folder, `${++count}.db`)}`
      : `${database}?options=-c%20search_path%3D${name}_${++count}`;
}

/** An agent whose model answers by how many answers the transcript has already. */
export function scriptedAgent(
  answers: readonly ScriptStep[],
  more: DurableAgentOptions & { name?: string; onRequest?: () => void } = {},
): DurableAgent {
  const { name = "office", onRequest, ...options } = more;
  return defineAgent({
    name,
    version: "1",
    open: () => {
      const step: ScriptStep = (context, streamOptions, callIndex) => {
        onRequest?.();
        const answered = context.messages.filter(({ role }) => role === "assistant").length;
        const answer = answers[answered] ?? "More.";
        return typeof answer === "function" ? answer(context, streamOptions, callIndex) : answer;
      };
      const model = scriptedModel(Array.from({ length: 100 }, () => step));
      return { model: model.model, protocol: model, ...options };
    },
  });
}

/** A tool that does something, of one argument. */
export function effectTool(
  name: string,
  execute: (value: string) => string | Promise<string>,
  more: Partial<AgentTool> = {},
): AgentTool {
  const parameters = { type: "object", properties: { to: { type: "string" } } } as const;
  return {
    ...defineTool({ name, description: name, parameters, execute: ({ to = "" }) => execute(to) }),
    ...more,
  };
}

/** Opens runs and starts a worker for them; closes both at the end. */
export async function withWorker<T>(
  url: string,
  options: WorkerOptions,
  act: (runs: Runs, worker: Worker) => Promise<T>,
): Promise<T> {
  const runs = new Runs(await openStore(url));
  const worker = new Worker(runs, options);
  await worker.start();
  try {
    return await act(runs, worker);
  } finally {
    await worker.stop({ drainMs: 0 });
    await runs.close();
  }
}

/** A store whose methods are called through `around`. */
export function wrapStore(
  store: Store,
  around: (name: keyof Store, call: () => Promise<unknown>, args: readonly unknown[]) => unknown,
): Store {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function" || name === "listen" || name === "onReady") {
        return typeof value === "function" ? value.bind(target) : value;
      }
      return (...args: unknown[]): unknown =>
        around(name as keyof Store, async () => Reflect.apply(value, target, args), args);
    },
  });
}

/** The sessions of an empty store, for the tests that every storage has to pass. */
export async function openUnderTest(
  url: string,
  options: StoreOptions = {},
): Promise<StorageUnderTest> {
  let shouldFail = false;
  const store = wrapStore(await openStore(url, options), (name, call) => {
    if (name !== "append" || !shouldFail) return call();
    shouldFail = false;
    return Promise.reject(new Error("disk full"));
  });
  const runs = new Runs(store, { onError: () => {} });
  const opened = [runs];
  /** Another process, that takes all others for dead. */
  const openNext = async (): Promise<SessionStorage> => {
    const next = await openRuns(url, options);
    opened.push(next);
    for (const { id } of await next.workers()) await next.release(id);
    return next.sessions();
  };
  return {
    storage: runs.sessions(),
    crash: openNext,
    takeOver: async (id) => (await openNext()).open(id),
    failNextAppend: () => {
      shouldFail = true;
    },
    dispose: async () => {
      for (const each of opened) await each.close();
    },
  };
}
