import { Worker } from "node:worker_threads";
import type { Listener } from "@gyre/protocol/node";
import { type HealthWorkerData, type HealthWorkerReport, serveHealth } from "./health-worker.ts";

/** How often the main thread shows that its loop turns. */
const BEAT_MS = 250;

export interface HealthOptions {
  host: string;
  /** 0: a free one. */
  port: number;
  /** How old the newest turn of the main loop may be. */
  limitMs: number;
  /** The worker has ended by itself. */
  onError: (error: unknown, where: string) => void;
}

/**
 * Answers `/healthz` on a port of its own, in a thread of its own: the answer does not wait for the
 * main thread, and says how long that has not come back to its loop. Throws what `listen` throws.
 */
export async function listenHealth(options: HealthOptions): Promise<Listener> {
  const { host, port, limitMs, onError } = options;
  const beat = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT));
  const mark = (): void => void Atomics.store(beat, 0, process.hrtime.bigint());
  mark();
  const workerData: HealthWorkerData = { host, port, limitMs, beat };
  const modules = ["node:http", "node:worker_threads"].map((name) => `require("${name}")`);
  const worker = new Worker(`(${serveHealth.toString()})(${modules.join(", ")})`, {
    eval: true,
    workerData,
    // It needs neither the options of the program nor its keys.
    execArgv: [],
    env: {},
  });
  let bound: number;
  try {
    bound = await readPort(worker);
  } catch (error) {
    await worker.terminate();
    throw error;
  }
  const beats = setInterval(mark, BEAT_MS).unref();
  worker.unref();
  worker.on("error", (error) => onError(error, "answering /healthz"));
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${name}:${bound}/healthz`,
    close: async () => {
      clearInterval(beats);
      await worker.terminate();
    },
  };
}

function readPort(worker: Worker): Promise<number> {
  return new Promise((resolve, reject) => {
    worker.once("error", reject);
    worker.once("message", (report: HealthWorkerReport) => {
      worker.off("error", reject);
      if ("port" in report) return resolve(report.port);
      const { code, message } = report.error;
      reject(Object.assign(new Error(message), { code }));
    });
  });
}
