import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentTool, defineTool } from "@gyre/agent";
import { scriptedModel, type ScriptStep } from "@gyre/ai/testing";
import { defineAgent, type DurableAgent, type DurableAgentOptions } from "../contract/agent.ts";
import type { Store } from "../contract/store.ts";
import { openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { Worker, type WorkerOptions } from "./worker.ts";

/** `npm run durable -- conform` has the tests run on a database: each store is a schema of it. */
const database = process.env["GYRE_DURABLE_URL"];

/** Some tests are about files alone. */
export const isFile: boolean = database === undefined;

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
      if (typeof value !== "function" || name === "listen") {
        return typeof value === "function" ? value.bind(target) : value;
      }
      return (...args: unknown[]): unknown =>
        around(name as keyof Store, async () => Reflect.apply(value, target, args), args);
    },
  });
}
