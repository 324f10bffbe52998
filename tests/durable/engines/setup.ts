import { type EngineSpec, openEngine } from "../../../packages/durable/src/testing/engine.ts";
import type { Engine, Runs, StoreOptions } from "../../../packages/durable/src/index.ts";
import { afterAll, beforeAll, vi } from "vitest";

/** The stores of a file share an engine: each worker looks whether a session is one of its store's. */
const spec: EngineSpec = JSON.parse(process.env["GYRE_DURABLE_ENGINE"] ?? "");
const name = `gyre-${process.pid}`;
const engine = await openEngine(
  spec.name === "dbos"
    ? { name: "dbos", options: { ...spec.options, queue: name } }
    : { name: "restate", options: { ...spec.options, service: name } },
);

vi.mock("../../../packages/durable/src/runs/runs.ts", async (importOriginal) => {
  const original = await importOriginal<{ Runs: typeof Runs }>();
  class EngineRuns extends original.Runs {
    constructor(store: Runs["store"], options: StoreOptions = {}) {
      // It is closed at the end of the file.
      const shared: Engine = {
        name: engine.name,
        wake: (...args) => engine.wake(...args),
        work: (...args) => engine.work(...args),
      };
      super(store, { ...options, engine: shared });
    }
  }
  return { ...original, Runs: EngineRuns };
});

let work: { stop(): Promise<void> } | undefined;
beforeAll(async () => {
  // It is launched once, not for each worker.
  work = await engine.work(async () => {}, { concurrency: 50, pools: [""] });
});
afterAll(async () => {
  await work?.stop();
  await engine.close?.();
});
