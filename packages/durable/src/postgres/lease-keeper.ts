import { createRequire } from "node:module";
import { Worker as Thread } from "node:worker_threads";
import { DurableError } from "../contract/errors.ts";
import type { LeaseKeeper, LeaseWish } from "../contract/store.ts";
import {
  decideBeat,
  keepLease,
  type LeaseThreadData,
  type LeaseThreadOrder,
  type LeaseThreadReport,
} from "./lease-thread.ts";

/** A heartbeat that takes longer has failed. */
const TIMEOUT_MS = 1_000;
/** The thread holds next to nothing. */
const RESOURCES = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 32 };

/** Starts a thread that keeps a lease while the event loop of this one hangs. */
export function startLeaseKeeper(url: string, statement: string, wish: LeaseWish): LeaseKeeper {
  const { worker, leaseMs, beatMs, stallMs, onError } = wish;
  const sign = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT));
  const mark = (): void => void Atomics.store(sign, 0, process.hrtime.bigint());
  mark();
  const workerData: LeaseThreadData = {
    ...{ statement, worker, leaseMs, beatMs, stallMs, sign },
    driver: createRequire(import.meta.url).resolve("pg"),
    config: {
      ...{ connectionString: url, application_name: "gyre lease" },
      ...{ connectionTimeoutMillis: TIMEOUT_MS, query_timeout: TIMEOUT_MS },
    },
  };
  const code = `(${keepLease.toString()})(require("node:worker_threads"), require, ${decideBeat.toString()})`;
  const thread = new Thread(code, {
    ...{ eval: true, workerData, execArgv: [], resourceLimits: RESOURCES },
  });
  thread.unref();
  thread.on("error", (error) => onError(error, "heartbeat thread"));
  thread.on("message", ({ error }: LeaseThreadReport) => {
    const message = `The lease was not renewed while the event loop hung: ${error}`;
    onError(new DurableError("unavailable", message), "heartbeat thread");
  });
  return {
    mark,
    rename: (to) => thread.postMessage({ worker: to } satisfies LeaseThreadOrder),
    close: async () => void (await thread.terminate()),
  };
}
