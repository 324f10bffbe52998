import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { EngineSpec } from "./engine.ts";

export interface WorkerProcessOptions {
  readonly url: string;
  readonly seed: number;
  /** For the journal. */
  readonly folder: string;
  readonly leaseMs: number;
  readonly stallMs?: number;
  readonly concurrency: number;
  /** How far its clock is off. Default 0. */
  readonly skewMs?: number;
  /** In the place of the store's own order of work. */
  readonly engine?: EngineSpec;
}

/** What a worker process is asked to do to itself: block its event loop, or have a wrong clock. */
export type Disturbance = { readonly stallMs: number } | { readonly skewMs: number };

/** A worker as a child process, which can be killed, stopped and continued. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  isStopped = false;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Starts it and waits until it works. `module`: another build of the worker. */
  static async start(
    options: WorkerProcessOptions,
    module: string = findWorkerModule(),
  ): Promise<WorkerProcess> {
    const child = fork(module, [JSON.stringify(options)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      execArgv: ["--no-warnings"],
    });
    const outcome = await Promise.race([once(child, "message"), once(child, "exit")]);
    if (outcome[0] !== "ready") throw new Error(`A worker ended with ${String(outcome[0])}.`);
    return new WorkerProcess(child);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    if (!this.isAlive) return;
    const exited = once(this.#child, "exit");
    this.#child.kill(signal);
    await exited;
  }

  stop(): void {
    this.isStopped = this.#child.kill("SIGSTOP");
  }

  disturb(disturbance: Disturbance): void {
    // A process that has just ended has nothing to disturb.
    if (this.isAlive) this.#child.send(disturbance, () => {});
  }

  continue(): void {
    if (this.isStopped) this.#child.kill("SIGCONT");
    this.isStopped = false;
  }
}

/** The built module: a child process does not read TypeScript. */
function findWorkerModule(): string {
  const path = import.meta.url.endsWith(".ts")
    ? "../../dist/testing/worker-process.js"
    : "./worker-process.js";
  return fileURLToPath(new URL(path, import.meta.url));
}
