import { openEngine } from "../../../packages/durable/src/testing/engine.ts";
import {
  DurableError,
  type Engine,
  type Runs,
  type StoreOptions,
} from "../../../packages/durable/src/index.ts";
import { SqliteStore } from "../../../packages/durable/src/sqlite/sqlite-store.ts";
import type * as Load from "../../../packages/durable/src/worker/load.ts";
import { engineSpec } from "../../../packages/durable/src/worker/harness.ts";
import { afterAll, beforeAll, vi } from "vitest";

if (!engineSpec) throw new Error("GYRE_DURABLE_ENGINE names no engine.");
/** The stores of a file share it: each worker looks whether a session is one of its store's. */
const engine = await openEngine(engineSpec);

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
      // What a database with an engine ends with is compared with a file that has none.
      super(store, store instanceof SqliteStore ? options : { ...options, engine: shared });
    }
  }
  return { ...original, Runs: EngineRuns };
});

// How late the event loop comes is for the machine that the tests run on: here no worker is too busy for it.
vi.mock("../../../packages/durable/src/worker/load.ts", async (importOriginal) => {
  const original = await importOriginal<typeof Load>();
  class SteadyGauge extends original.LoadGauge {
    constructor(limits: Load.LoadLimits) {
      super({ ...limits, maxLagMs: Infinity });
    }
  }
  return { ...original, LoadGauge: SteadyGauge };
});

let work: { stop(): Promise<void> } | undefined;
beforeAll(async () => {
  if (engine.name !== "restate") return;
  // Its address stays while workers come and go, as that of a balancer does: Restate tries it again.
  const refuse = (): never => {
    throw new DurableError("closed", "There is no worker.");
  };
  work = await engine.work(async () => refuse(), { concurrency: 50, pools: [""] });
});
afterAll(async () => {
  await work?.stop();
  await engine.close?.();
});
