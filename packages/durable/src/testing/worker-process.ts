// A worker in a process of its own: `node worker-process.js '{"url": ...}'`.
import { join } from "node:path";
import { argv, pid } from "node:process";
import type { ClaimOutcome, Store } from "../contract/store.ts";
import { isUnavailable } from "../contract/errors.ts";
import { openStore } from "../runs/open.ts";
import { Runs } from "../runs/runs.ts";
import { Worker } from "../worker/worker.ts";
import { openEngine } from "./engine.ts";
import { Journal } from "./journal.ts";
import { createScriptedAgent } from "./scripted-agent.ts";
import type { Disturbance, WorkerProcessOptions } from "./processes.ts";

const options: WorkerProcessOptions = JSON.parse(argv[2] ?? "{}");
const { url, seed, folder, leaseMs, stallMs, concurrency } = options;
let { skewMs = 0 } = options;
bendClock(() => skewMs);
const journal = new Journal(join(folder, `${pid}.jsonl`));
const onError = (error: unknown, where: string): void => {
  if (isUnavailable(error)) return;
  journal.write({ at: "error", where, message: String(error) });
};
const store = await openStore(url, { migrate: false, synchronous: "normal", onError });
const engine = options.engine && (await openEngine(options.engine));
const runs = new Runs(noteClaims(store, journal), { onError, ...(engine && { engine }) });
const worker = new Worker(runs, {
  agents: [createScriptedAgent(journal, seed)],
  leaseMs,
  concurrency,
  ...(stallMs !== undefined && { stallMs }),
  onError,
});
await worker.start();
process.send?.("ready");
process.on("message", (disturbance: Disturbance) => {
  if ("skewMs" in disturbance) skewMs = disturbance.skewMs;
  else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, disturbance.stallMs);
});
// It ends with the process that started it.
process.on("disconnect", () => process.exit());
process.on("SIGTERM", () => {
  void worker.stop().then(() => process.exit());
});

/** A store that writes each claim into the journal before the worker has it. */
function noteClaims(inner: Store, to: Journal): Store {
  const claim = async (...args: Parameters<Store["claim"]>): Promise<ClaimOutcome> => {
    const outcome = await inner.claim(...args);
    for (const { session, token, seq, worker: id } of outcome.claims) {
      to.write({ at: "claim", session, token, seq, worker: id });
    }
    return outcome;
  };
  return new Proxy(inner, {
    get(target, name) {
      if (name === "claim") return claim;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Everything that asks this process for the time of day gets a wrong one. */
function bendClock(readSkewMs: () => number): void {
  const RightDate = Date;
  globalThis.Date = new Proxy(RightDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [readNow()] : args, newTarget),
    get: (target, name, receiver) =>
      name === "now" ? readNow : Reflect.get(target, name, receiver),
  });
  function readNow(): number {
    return RightDate.now() + readSkewMs();
  }
}
